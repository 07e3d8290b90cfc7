// From the enqueue's COMMIT to the handler's start, on an idle queue.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "bench/bench.h"

namespace commitq::bench {
namespace {

using Steady = std::chrono::steady_clock;

double percentile(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

/// Enqueues one job and returns when COMMIT had returned.
Steady::time_point commit_one(Connection& db, const Queue& queue) {
    db.run("START TRANSACTION");
    queue.enqueue(db, "stamp", "{}");
    db.run("COMMIT");
    return Steady::now();
}

std::vector<double> with_notify(Database& database, int count) {
    std::mutex mutex;
    std::condition_variable changed;
    Steady::time_point started{};
    bool has_started = false;
    const Queue queue{"q"};
    Worker worker{database.options(), drain_worker()};
    worker.follow(queue);
    worker.on("stamp", [&](JobContext&) {
        const std::scoped_lock lock{mutex};
        started = Steady::now();
        has_started = true;
        changed.notify_all();
        return Outcome::done();
    });
    worker.start();
    Connection db = database.connect();
    std::vector<double> milliseconds;
    for (int i = 0; i < count; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10 + i % 7});  // the queue is idle again
        const auto committed = commit_one(db, queue);
        queue.notify();
        std::unique_lock lock{mutex};
        changed.wait(lock, [&] { return has_started; });
        has_started = false;
        milliseconds.push_back(std::chrono::duration<double, std::milli>(started - committed).count());
    }
    worker.stop(std::chrono::seconds{5});
    return milliseconds;
}

/// The claim of a worker that was told, by hand: two round trips and a commit after the same pause.
std::vector<double> by_hand(Database& database, int count) {
    const Queue queue{"by_hand"};
    Connection db = database.connect();
    Connection claimer{database.options(), CLIENT_MULTI_STATEMENTS};
    claimer.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    std::vector<double> milliseconds;
    for (int i = 0; i < count; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10 + i % 7});
        const auto committed = commit_one(db, queue);
        const auto ids = run_all(
            claimer,
            "START TRANSACTION;SELECT id,type,payload FROM commitq_jobs FORCE INDEX (claim) WHERE queue='by_hand'"
            " AND state='pending' AND priority=5 AND available_at<=UTC_TIMESTAMP(6) ORDER BY available_at,id LIMIT 1"
            " FOR UPDATE SKIP LOCKED");
        run_all(claimer, fmt::format("UPDATE commitq_jobs SET state='running' WHERE id={};COMMIT", ids.at(0)));
        const auto claimed = Steady::now();
        milliseconds.push_back(std::chrono::duration<double, std::milli>(claimed - committed).count());
    }
    return milliseconds;
}

std::vector<double> by_polling(Database& database, int count) {
    WorkerProcess process{database, "q"};
    const Queue queue{"q"};
    Connection db = database.connect();
    std::mt19937 random{1};
    std::vector<double> milliseconds;
    for (int i = 0; i < count; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{600 + random() % 300});  // idle at its longest wait
        const auto committed = commit_one(db, queue);
        const Steady::time_point started{Steady::duration{std::stoll(process.line())}};
        milliseconds.push_back(std::chrono::duration<double, std::milli>(started - committed).count());
    }
    return milliseconds;
}

}  // namespace

Report latency(const Options& options) {
    Report report{.bench = "latency", .rounds = options.rounds};
    Database database;
    const int jobs = options.rows(300);
    const auto notified = [&] {
        const auto times = with_notify(database, jobs);
        report.add("latency_notify_p50_ms", percentile(times, 0.5));
        report.add("latency_notify_p99_ms", percentile(times, 0.99));
    };
    const auto handmade = [&] {
        const auto times = by_hand(database, jobs);
        report.add("latency_floor_p50_ms", percentile(times, 0.5));
        report.add("latency_floor_p99_ms", percentile(times, 0.99));
    };
    const auto polled = [&] {
        const auto times = by_polling(database, options.scale < 1 ? 3 : 20);
        report.add("latency_poll_p50_ms", percentile(times, 0.5));
    };
    in_turn(options.with_more_rounds(), {notified, handmade});
    in_turn(options, {polled});
    return report;
}

}  // namespace commitq::bench
