// Draining a backlog: one process against the floor, and several processes.
#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "bench/bench.h"

namespace commitq::bench {
namespace {

/// Says when the last of so many jobs is completed in the database.
class CountDown : public Observer {
public:
    explicit CountDown(int jobs) : left_{jobs} {}
    void on_completed(const JobEvent&) noexcept override {
        if (--left_ == 0) {
            const std::scoped_lock lock{mutex_};
            done_ = true;
            changed_.notify_all();
        }
    }
    void on_error(std::string_view, const Error&) noexcept override { ++errors; }
    void wait() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return done_; });
    }
    std::atomic<int> errors{0};

private:
    std::atomic<int> left_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
};

}  // namespace

Drained drain_once(Database& database, int jobs, WorkerOptions options) {
    const auto counter = std::make_shared<CountDown>(jobs);
    options.observer = counter;
    Worker worker{database.options(), options};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    Connection look{database.options()};
    const long questions = status(look, "Questions");
    const double cpu = cpu_seconds();
    const double seconds = seconds_of([&] {
        worker.start();
        counter->wait();
    });
    const double used = cpu_seconds() - cpu;
    const long asked = status(look, "Questions") - questions;
    worker.stop(std::chrono::seconds{5});
    return {.jobs_per_s = jobs / seconds,
            .cpu_us_per_job = used * 1e6 / jobs,
            .statements_per_job = static_cast<double>(asked) / jobs};
}

namespace {

/// Deadlocks and lock wait timeouts on the server so far.
long lock_errors(Connection& look) {
    return look.number(
        "SELECT CAST(SUM(COUNT) AS SIGNED) FROM information_schema.INNODB_METRICS"
        " WHERE NAME IN ('lock_deadlocks','lock_timeouts')");
}

/// Waits until all jobs are completed. Looks at the last one only, as long as that isn't: to count them takes the server longer
/// than a claim does.
void wait_for_all(Connection& look, int jobs) {
    const std::string last = fmt::format("SELECT state='completed' FROM commitq_jobs WHERE id={}",
                                         look.number("SELECT MAX(id) FROM commitq_jobs"));
    const std::string all = "SELECT COUNT(*) FROM commitq_jobs WHERE state='completed'";
    const auto done = [&] { return look.number(last) == 1 && look.number(all) == jobs; };
    if (!test::eventually(done, std::chrono::minutes{5})) {
        throw std::runtime_error{"not all jobs were completed"};
    }
}

/// All processes are there already when the jobs become due, at one moment. Its end is the last completion, by the server.
double drain_with_processes(const Options& options, int processes, Report& report) {
    Database database;
    const int jobs = options.rows(20'000);
    std::vector<std::unique_ptr<WorkerProcess>> workers;
    for (int i = 0; i < processes; ++i) {
        workers.push_back(std::make_unique<WorkerProcess>(database, "q"));
    }
    Connection look{database.options()};
    const long errors_before = lock_errors(look);
    const std::string due =
        fmt::format("TIMESTAMP'{}'", look.value("SELECT UTC_TIMESTAMP(6) + INTERVAL 1500000 MICROSECOND"));
    fill(database, jobs, 200,
         {.available_at = due + " + INTERVAL n MICROSECOND"});  // like those of as many transactions
    wait_for_all(look, jobs);
    report.add("lock_errors", static_cast<double>(lock_errors(look) - errors_before));
    return jobs / std::stod(look.value(
                      fmt::format("SELECT TIMESTAMPDIFF(MICROSECOND,{},MAX(finished_at))/1e6 FROM commitq_jobs", due)));
}

}  // namespace

WorkerOptions drain_worker() { return {.queues = {"q"}, .concurrency = 8, .reaper = false}; }

Report drain(const Options& asked) {
    const Options options = asked.with_more_rounds();
    Report report{.bench = "drain", .rounds = options.rounds};
    const int jobs = options.rows(20'000);
    const auto fresh = [&](const std::function<void(Database&)>& side) {
        return [side, jobs] {
            Database database;
            fill(database, jobs, 200);
            side(database);
        };
    };
    in_turn(options, {fresh([&](Database& database) {
                          const Drained drained = drain_once(database, jobs, drain_worker());
                          report.add("drain_jobs_per_s", drained.jobs_per_s);
                          report.add("client_cpu_us_per_job", drained.cpu_us_per_job);
                          report.add("round_trips_per_job", drained.statements_per_job);
                      }),
                      fresh([&](Database& database) {
                          report.add("floor_jobs_per_s", jobs / floor_drain(database, 2, drain_worker().batch));
                      })});
    report.ratio("drain_vs_floor", "drain_jobs_per_s", "floor_jobs_per_s");
    return report;
}

Report scale(const Options& asked) {
    const Options options = asked.with_more_rounds();
    Report report{.bench = "scale", .rounds = options.rounds};
    const auto side = [&](const std::string& name, int processes) {
        return [&report, &options, name, processes] {
            report.add(name, drain_with_processes(options, processes, report));
        };
    };
    in_turn(options, {side("drain_1p_jobs_per_s", 1), side("drain_2p_jobs_per_s", 2), side("drain_4p_jobs_per_s", 4)});
    report.ratio("drain_2p_vs_1p", "drain_2p_jobs_per_s", "drain_1p_jobs_per_s");
    report.ratio("drain_4p_vs_1p", "drain_4p_jobs_per_s", "drain_1p_jobs_per_s");
    return report;
}

}  // namespace commitq::bench
