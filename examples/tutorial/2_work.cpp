// Tutorial 2: a worker.
//
// The part between the [readme] marks is the whole of it: a request that saves an order and enqueues its job in one
// transaction, and a worker that runs the job. Both are in one process here; in yours they may be, or not.
#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>

#include <atomic>
#include <functional>
#include <string_view>

#include "../support.h"

using examples::execute;

using namespace std::chrono_literals;

/// Stands for the outside world.
struct Mailer {
    std::atomic<int> mails{0};

    void send(commitq::JobId id, std::string_view text) {
        fmt::print("mail for job {}: {}\n", id, text);
        ++mails;
    }
};

// [readme]
// In a request, on your own MYSQL*: the order and its job commit together, or neither does.
void save_order(MYSQL* db, const commitq::Queue& queue, std::string_view json) {
    execute(db, "START TRANSACTION");
    execute(db, "INSERT INTO orders (body) VALUES (" + commitq::sql_literal(json) + ")");
    queue.enqueue(db, "order.created", json);
    execute(db, "COMMIT");
    queue.notify();  // optional: wakes the workers of this process at once
}

// In the same process, or in another one.
void serve(const commitq::ConnectOptions& options, const commitq::Queue& queue, Mailer& mailer,
           const std::function<void()>& until_shutdown) {
    commitq::Worker worker{options, {.queues = {"orders"}, .concurrency = 4, .lease = 30s}};
    worker.follow(queue);
    worker.on("order.created",
              [&](commitq::JobContext& job) {
                  mailer.send(job.id(), job.payload());  // at least once: let the receiver ignore a repeated id
                  return commitq::Outcome::done();  // or retry("smtp 451"), snooze(10min), dead("no such user"), ...
              },
              {.max_attempts = 8, .retry = commitq::RetryPolicy::exponential(1min, 2.0, 24h)});

    worker.start();  // claims, leases, retries and the reaper run on threads from here on
    until_shutdown();
    worker.stop(10s);  // finishes what runs; what it can't finish goes to other workers
}
// [/readme]

void tutorial(const commitq::ConnectOptions& options, MYSQL* db) {
    execute(db, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, body LONGBLOB NOT NULL)");
    const commitq::Queue queue{"orders"};  // thread-safe, holds no connection
    Mailer mailer;

    // Jobs wait in the table until there is a worker: enqueueing needs none.
    save_order(db, queue, R"({"item": "teapot"})");

    serve(options, queue, mailer, [&] {
        save_order(db, queue, R"({"item": "茶壶 🫖"})");
        save_order(db, queue, R"({"item": "sugar bowl"})");
        examples::wait_until("all three mails go out", [&] { return mailer.mails == 3; });
    });

    // A job that ran stays as a completed row, for people to look at, with the times of everything.
    for (const auto& job : examples::query(db, "SELECT id, type, state, attempt FROM commitq_jobs ORDER BY id")) {
        fmt::print("job {} {} is {} after {} attempt\n", *job[0], *job[1], *job[2], *job[3]);
        examples::check(job[2] == "completed" && job[3] == "1", "each job is completed at its first attempt");
    }
    examples::check(mailer.mails == 3, "each mail went out once");
}

int main() { return examples::run("tutorial_2_work", tutorial); }
