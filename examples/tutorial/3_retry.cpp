// Tutorial 3: when a job doesn't work out.
//
// A handler answers with an Outcome:
//   done     it worked;
//   retry    this attempt failed: again after a backoff, and a dead letter when the attempts are used up;
//   snooze   not now: again later, and no attempt was used;
//   dead     it will never work: a dead letter at once, for a person to look at;
//   cancel   nobody wants it any more.
// An exception of any type means retry. A handler that takes the whole process down has used up an attempt too, since the
// counter goes up when a job is claimed: it can't come back for ever.
#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>

#include <atomic>
#include <map>

#include "../support.h"

using namespace std::chrono_literals;
using commitq::JobContext;
using commitq::Outcome;
using commitq::RetryPolicy;

// An Observer sees each event. Its hooks run on the worker's threads, several at once: keep them short.
struct Diary : commitq::Observer {
    std::atomic<int> ended{0};

    void on_retried(const commitq::JobEvent& job) noexcept override {
        fmt::print("{}, attempt {}: {}; again in {} ms\n", job.type, job.attempt, job.reason, job.delay / 1ms);
    }
    void on_snoozed(const commitq::JobEvent& job) noexcept override {
        fmt::print("{}, attempt {}: snoozed for {} ms\n", job.type, job.attempt, job.delay / 1ms);
    }
    void on_dead(const commitq::JobEvent& job) noexcept override {
        fmt::print("{}, attempt {}: dead: {}\n", job.type, job.attempt, job.reason);
        ++ended;
    }
    void on_completed(const commitq::JobEvent& job) noexcept override {
        fmt::print("{}, attempt {}: done\n", job.type, job.attempt);
        ++ended;
    }
};

void tutorial(const commitq::ConnectOptions& options, MYSQL* db) {
    const auto diary = std::make_shared<Diary>();
    commitq::Worker worker{options, {.queues = {"messages"}, .observer = diary}};

    // Backoff: 20 ms, 40 ms, 80 ms ... here; minutes to hours in life. Jitter, 10% by default, keeps jobs that failed
    // together from coming back together. The policy belongs to the handler; without one, the worker's is used.
    worker.on("mail", [](JobContext& job) { return job.attempt() < 4 ? Outcome::retry("smtp 451") : Outcome::done(); },
              {.max_attempts = 8, .retry = RetryPolicy::exponential(20ms, 2.0, 1h)});

    // A snoozed job comes back with the same attempt number, as often as it takes.
    std::atomic<int> looks{0};
    worker.on("sms", [&](JobContext&) { return ++looks < 3 ? Outcome::snooze(20ms) : Outcome::done(); });

    // Bury what can't work. Trying again would only hide it.
    worker.on("fax", [](JobContext&) { return Outcome::dead("no such number"); });

    // Attempts have an end. `throw 42` would do as well.
    worker.on("telegram", [](JobContext&) -> Outcome { throw std::runtime_error{"the wire is cut"}; },
              {.max_attempts = 3, .retry = RetryPolicy::fixed(10ms)});

    const commitq::Queue queue{"messages"};
    examples::execute(db, "START TRANSACTION");
    for (const char* type : {"mail", "sms", "fax", "telegram"}) {
        queue.enqueue(db, type, "hello");
    }
    examples::execute(db, "COMMIT");

    worker.start();
    examples::wait_until("all four jobs end", [&] { return diary->ended == 4; });
    worker.stop(5s);

    // Dead letters stay in the table with the reason, until somebody replays or discards them.
    std::map<std::string, std::string> jobs;
    for (const auto& row : examples::query(db, "SELECT type, state, attempt, last_error FROM commitq_jobs")) {
        jobs[*row[0]] = *row[1] + " after " + *row[2];
        fmt::print("{}: {}; last error: {}\n", *row[0], jobs[*row[0]], row[3].value_or("none"));
    }
    examples::check(jobs["mail"] == "completed after 4", "the mail went out at the fourth attempt");
    examples::check(jobs["sms"] == "completed after 1", "a snooze uses up no attempt");
    examples::check(jobs["fax"] == "dead after 1", "what can't work is dead at once");
    examples::check(jobs["telegram"] == "dead after 3", "three attempts, then a dead letter");
}

int main() { return examples::run("tutorial_3_retry", tutorial); }
