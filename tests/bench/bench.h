// What all benchmarks share: a database, rounds in turn, medians, and the report.
#pragma once

#include "support/database.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::bench {

using test::Connection;
using test::Database;

/// Median and range of one figure over all rounds.
struct Figure {
    std::vector<double> rounds{};

    void add(double value) { rounds.push_back(value); }
    [[nodiscard]] double median() const;
    [[nodiscard]] double least() const;
    [[nodiscard]] double most() const;
};

/// What a benchmark found. Figures are printed in the order of their names.
struct Report {
    std::string bench;
    int rounds = 0;
    std::map<std::string, Figure> figures{};
    /// Figures that were computed from others, such as a ratio.
    std::map<std::string, double> values{};

    void add(const std::string& name, double value) { figures[name].add(value); }
    /// The median over the rounds of figure @p above divided by figure @p below, as value @p name: within a round the
    /// sides ran one after the other, so that drift of the machine over the rounds hits both.
    void ratio(const std::string& name, const std::string& above, const std::string& below);
};

struct Options {
    int rounds = 5;
    bool json = false;
    double scale = 1.0;  ///< Of all row counts: a smoke run takes a hundredth.
    [[nodiscard]] int rows(int full) const;
    /// For a ratio of sides that take a second: each strays by a tenth, and the median of three times as many is steady.
    [[nodiscard]] Options with_more_rounds() const;
};

/// Says what is going on, on a terminal only.
void progress(std::string_view text);

/// Runs @p sides in turn, @p rounds times, the first one alternating, so that drift of the machine hits all alike.
void in_turn(const Options& options, const std::vector<std::function<void()>>& sides);

double seconds_of(const std::function<void()>& work);
/// CPU seconds of this process so far.
double cpu_seconds();
/// A global status variable of the server.
long status(Connection& db, std::string_view name);

/// What the jobs of `fill` are like: SQL expressions, in which `n` is a number that is different in each of 10,000 rows.
struct Filling {
    std::string queue = "'q'";
    std::string state = "'pending'";
    std::string priority = "5";
    std::string available_at = "UTC_TIMESTAMP(6)";
};
/// Fills the table with jobs of @p bytes payload, by SQL on the server.
void fill(Database& database, int count, int bytes, const Filling& filling = {});

/// A process of `commitq-bench worker`: a worker with the default polling. For each job of type `stamp` it prints one
/// line, the steady clock's nanoseconds when the handler started.
class WorkerProcess {
public:
    WorkerProcess(const Database& database, const std::string& queues);
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;
    ~WorkerProcess();
    /// Waits for the next line; empty when the process ended.
    std::string line();
    /// Resident memory in MB.
    [[nodiscard]] double rss_mb() const;
    /// CPU seconds so far.
    [[nodiscard]] double cpu_seconds() const;

private:
    int pid_ = 0;
    int output_ = -1;
    std::string buffer_{};
};
/// The body of that process; ends on SIGTERM.
int run_worker_process(const std::string& database, const std::string& queues);

// ---- the benchmarks, one file each
Report floor(const Options& options);
Report enqueue(const Options& options);
Report drain(const Options& options);
Report scale(const Options& options);
Report flat(const Options& options);
Report latency(const Options& options);
Report bytes(const Options& options);
Report idle(const Options& options);

Report tune(const Options& options);

/// Runs statements in one round trip, with the bare C API. @returns the first column of the rows that came.
std::vector<std::string> run_all(MYSQL* db, const std::string& sql);

/// How a hand-written loop completes a batch.
enum class FloorLoop {
    plain,   ///< By a statement of its own.
    merged,  ///< In the transaction that claims the next one.
};
/// Drains the queue `q` with hand-written loops over the C API: the floor. @returns seconds.
double floor_drain(Database& database, int connections, int batch, FloorLoop kind = FloorLoop::plain);

/// The worker of `drain`, and of `commitq-bench worker`.
WorkerOptions drain_worker();

struct Drained {
    double jobs_per_s;
    double cpu_us_per_job;
    double statements_per_job;  ///< A round trip carries one or more: an upper bound of the round trips.
};
/// Drains the @p jobs of queue `q` with a worker in this process.
Drained drain_once(Database& database, int jobs, WorkerOptions options);

}  // namespace commitq::bench
