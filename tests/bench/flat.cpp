// Does the cost of a claim grow with history, schedules, other queues, or a blocked purge?
#include <fmt/format.h>
#include <store/claim.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "bench/bench.h"

namespace commitq::bench {
namespace {

constexpr int kClaims = 20;
constexpr int kBatch = 100;

/// Looks and claims, as a worker does it, @p kClaims times. @returns microseconds per claim.
double claim_cost(Database& database) {
    fill(database, "q", kClaims * kBatch, 200);
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

/// The same table over and over: rows that a claim must not care about.
void many_completed(Database& database, int rows) {
    fill(database, "q", rows, 200);
    Connection db = database.connect();
    db.run(
        "UPDATE commitq_jobs SET state='completed', finished_at=UTC_TIMESTAMP(6), attempt=1, max_attempts=20,"
        " owner=x'000102030405060708090A0B0C0D0E0F'");
}

void many_scheduled(Database& database, int rows) {
    fill(database, "q", rows, 200);
    Connection db = database.connect();
    db.run("UPDATE commitq_jobs SET available_at=UTC_TIMESTAMP(6) + INTERVAL 1 DAY, priority=IF(id%2, 5, 1)");
}

void many_queues(Database& database, int rows) {
    fill(database, "q", rows, 200);
    Connection db = database.connect();
    db.run("UPDATE commitq_jobs SET queue=CONCAT('other', id%200)");
}

/// Drains @p jobs while an old snapshot blocks the purge. @returns the time of the last tenth-of-a-tenth by the first.
double purge_blocked(Database& database, int jobs, int part) {
    struct Marks : Observer {
        void on_completed(const JobEvent&) noexcept override {
            const int now_done = ++done;
            const auto now = std::chrono::steady_clock::now();
            if (now_done == first) {
                first_at = now;
            }
            if (now_done == total - first) {
                last_begins = now;
            }
            if (now_done == total) {
                const std::scoped_lock lock{mutex};
                end = now;
                finished = true;
                changed.notify_all();
            }
        }
        int first = 0;
        int total = 0;
        std::atomic<int> done{0};
        std::chrono::steady_clock::time_point first_at{};
        std::chrono::steady_clock::time_point last_begins{};
        std::chrono::steady_clock::time_point end{};
        std::mutex mutex{};
        std::condition_variable changed{};
        bool finished = false;
    };
    fill(database, "q", jobs, 200);
    Connection snapshot = database.connect();
    snapshot.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    snapshot.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    const auto marks = std::make_shared<Marks>();
    marks->first = part;
    marks->total = jobs;
    WorkerOptions options = drain_worker();
    options.observer = marks;
    Worker worker{database.options(), options};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    const auto began = std::chrono::steady_clock::now();
    worker.start();
    std::unique_lock lock{marks->mutex};
    marks->changed.wait(lock, [&] { return marks->finished; });
    lock.unlock();
    worker.stop(std::chrono::seconds{5});
    return std::chrono::duration<double>(marks->end - marks->last_begins) /
           std::chrono::duration<double>(marks->first_at - began);
}

}  // namespace

Report flat(const Options& options) {
    Report report{.bench = "flat", .rounds = options.rounds};
    const int rows = options.rows(1'000'000);
    Database empty;
    Database completed;
    Database scheduled;
    Database queues;
    progress("filling tables");
    many_completed(completed, rows);
    many_scheduled(scheduled, rows);
    many_queues(queues, rows);
    const auto side = [&](const std::string& name, Database& database) {
        return [&report, &database, name] {
            report.add(name, claim_cost(database));
            database.look().run("DELETE FROM commitq_jobs WHERE queue='q' AND state='running'");
        };
    };
    in_turn(options, {side("claim_us_empty", empty), side("claim_us_completed", completed),
                      side("claim_us_scheduled", scheduled), side("claim_us_queues", queues)});
    report.ratio("flat_completed", "claim_us_completed", "claim_us_empty");
    report.ratio("flat_scheduled", "claim_us_scheduled", "claim_us_empty");
    report.ratio("flat_queues", "claim_us_queues", "claim_us_empty");
    in_turn(options, {[&] {
                Database database;
                report.add("flat_purge_blocked", purge_blocked(database, options.rows(200'000), options.rows(10'000)));
            }});
    return report;
}

}  // namespace commitq::bench
