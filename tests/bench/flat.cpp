// Does the cost of a claim grow with history, schedules, other queues, or a blocked purge?
#include <fmt/format.h>
#include <store/claim.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.h"

namespace commitq::bench {
namespace {

constexpr int kClaims = 20;
constexpr int kBatch = 100;

/// Looks and claims, as a worker does it, @p kClaims times. @returns microseconds per claim.
double claim_cost(Database& database) {
    fill(database, kClaims * kBatch, 200);
    const store::Tables tables{"commitq_", database.name()};
    const std::vector<std::string> queues{"q"};
    const std::vector<std::pair<std::string, int>> types{{"t", 20}};
    const auto claimant = store::make_claimant(core::make_token(), std::chrono::seconds{30}, types);
    mysql::Session session{database.options(), mysql::Purpose::library};
    const double seconds = seconds_of([&] {
        for (int i = 0; i < kClaims; ++i) {
            const auto due = store::look(session, tables, queues);
            const auto at =
                std::find_if(due.begin(), due.end(), [](const store::Due& place) { return place.priority == 5; });
            store::claim(session, tables, claimant,
                         {.queue = "q",
                          .priority = 5,
                          .from = at->available_at,
                          .limit = kBatch,
                          .byte_budget = std::size_t{1} << 30U,
                          .not_these = {}});
        }
    });
    return seconds * 1e6 / kClaims;
}

/// Jobs that a claim must not care about.
const Filling kCompleted{.state = "'completed'"};
const Filling kScheduled{.priority = "IF(n%2,5,1)", .available_at = "UTC_TIMESTAMP(6) + INTERVAL 1 DAY"};
const Filling kOtherQueues{.queue = "CONCAT('other',n%200)"};

/// When each part of the jobs was completed.
class Marks : public Observer {
public:
    using Time = std::chrono::steady_clock::time_point;

    Marks(int jobs, int part) : jobs_{jobs}, part_{part} {}
    void on_completed(const JobEvent&) noexcept override {
        const std::scoped_lock lock{mutex_};
        if (done_++ == 0 || done_ % part_ == 0) {
            times_.push_back(std::chrono::steady_clock::now());
            changed_.notify_all();
        }
    }
    /// Of the first job and of the last one of each part.
    std::vector<Time> wait() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return done_ == jobs_; });
        return times_;
    }

private:
    const int jobs_;
    const int part_;
    std::mutex mutex_{};
    std::condition_variable changed_{};
    int done_ = 0;
    std::vector<Time> times_{};
};

/// Drains @p jobs while an old snapshot blocks the purge. @returns the seconds that each @p part of them took.
std::vector<double> drain_without_purge(int jobs, int part) {
    Database database;
    fill(database, jobs, 200);
    Connection snapshot = database.connect();
    snapshot.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    snapshot.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    const auto marks = std::make_shared<Marks>(jobs, part);
    WorkerOptions options = drain_worker();
    options.observer = marks;
    Worker worker{database.options(), options};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.start();
    const std::vector<Marks::Time> times = marks->wait();
    worker.stop(std::chrono::seconds{5});
    std::vector<double> seconds;
    for (std::size_t i = 1; i < times.size(); ++i) {
        seconds.push_back(std::chrono::duration<double>(times[i] - times[i - 1]).count());
    }
    return seconds;
}

/// Claims beside so many rows, against claims in an empty table.
void claims_beside(const Options& options, Report& report) {
    struct Side {
        Side(std::string its_name, Filling its_filling) : name{std::move(its_name)}, filling{std::move(its_filling)} {}
        std::string name;
        Filling filling;
        Database database{};
    };
    Database empty;
    std::vector<std::unique_ptr<Side>> sides;
    for (const auto& [name, filling] :
         {std::pair{"completed", kCompleted}, {"scheduled", kScheduled}, {"queues", kOtherQueues}}) {
        sides.push_back(std::make_unique<Side>(name, filling));
    }
    int before = 0;
    for (const int rows : {10'000, 100'000, 1'000'000}) {
        std::vector<std::function<void()>> work;
        const auto add = [&](Database& database, std::string figure) {
            work.emplace_back([&database, &report, figure = std::move(figure)] {
                report.add(figure, claim_cost(database));
                database.look().run("DELETE FROM commitq_jobs WHERE queue='q' AND state='running'");
            });
        };
        add(empty, fmt::format("claim_us_empty_{}", rows));
        for (const auto& side : sides) {
            progress(fmt::format("filling a table with {} jobs: {}", rows, side->name));
            fill(side->database, options.rows(rows) - before, 200, side->filling);
            add(side->database, fmt::format("claim_us_{}_{}", side->name, rows));
        }
        before = options.rows(rows);
        in_turn(options.with_more_rounds(), work);
    }
    for (const auto& side : sides) {
        report.ratio("flat_" + side->name, fmt::format("claim_us_{}_1000000", side->name), "claim_us_empty_1000000");
    }
}

}  // namespace

Report flat(const Options& options) {
    Report report{.bench = "flat", .rounds = options.rounds};
    claims_beside(options, report);
    const int part = options.rows(10'000);
    in_turn(options, {[&] {
                const std::vector<double> seconds = drain_without_purge(20 * part, part);
                report.add("flat_purge_blocked", seconds.back() / seconds.front());
                for (std::size_t i = 0; i < seconds.size(); ++i) {
                    report.add(fmt::format("purge_blocked_jobs_per_s_{:02}", i + 1), part / seconds[i]);
                }
            }});
    return report;
}

}  // namespace commitq::bench
