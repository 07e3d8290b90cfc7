// Tutorial 4: exactly once.
//
// Jobs are delivered at least once: a worker may do the work and die before it can write that down, and then another
// worker does it again. For effects outside the database, make the receiver ignore a repeated job.id().
//
// Effects inside the same database can do better: job.begin() opens a transaction, and job.complete_in(tx) makes the
// job's completion a part of it. Effect and completion commit together, or neither does.
#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>

#include <atomic>

#include "../support.h"

using namespace std::chrono_literals;
using commitq::Outcome;

constexpr int kTeapots = 100;
constexpr int kReservations = 40;

Outcome reserve(commitq::JobContext& job, std::atomic<int>& mishaps) {
    // A transaction on a connection of the worker's own. If it leaves this function open, it is rolled back.
    commitq::Transaction tx = job.begin();

    // Values from outside go in as sql_literal: nothing can break out of it.
    const std::uint64_t changed = tx.execute("UPDATE stock SET pieces = pieces - 1 WHERE pieces > 0 AND item = " +
                                             commitq::sql_literal(job.payload()));
    if (changed == 0) {
        return Outcome::dead("sold out");
    }

    // Every third job fails here the first time, with the stock already taken: as a crash would, it takes nothing along.
    if (job.attempt() == 1 && job.id() % 3 == 0) {
        ++mishaps;
        throw std::runtime_error{"the power went off after UPDATE"};
    }

    // Marks the job as completed, inside tx, if it is still ours. If this worker was frozen for longer than its lease,
    // the job is another worker's by now: this throws LeaseLost, the transaction is rolled back, and only the other
    // worker's reservation stands.
    job.complete_in(tx);

    // And every fifth fails here: completed, but not committed, is not completed.
    if (job.attempt() == 1 && job.id() % 5 == 0) {
        ++mishaps;
        throw std::runtime_error{"the power went off before COMMIT"};
    }

    tx.commit();
    return Outcome::done();
}

void tutorial(const commitq::ConnectOptions& options, MYSQL* db) {
    examples::execute(db, "CREATE TABLE stock (item VARCHAR(100) PRIMARY KEY, pieces INT NOT NULL)");
    examples::execute(db, fmt::format("INSERT INTO stock VALUES ('teapot', {})", kTeapots));

    const commitq::Queue queue{"stock"};
    const std::vector<commitq::NewJob> reservations(kReservations, {.type = "stock.reserve", .payload = "teapot"});
    examples::execute(db, "START TRANSACTION");
    queue.enqueue_many(db, reservations);
    examples::execute(db, "COMMIT");

    std::atomic<int> mishaps{0};
    commitq::Worker worker{options, {.queues = {"stock"}, .concurrency = 4}};
    worker.on("stock.reserve", [&](commitq::JobContext& job) { return reserve(job, mishaps); },
              {.retry = commitq::RetryPolicy::fixed(20ms)});
    worker.start();
    examples::wait_until("all reservations are completed", [&] {
        return examples::value(db, "SELECT COUNT(*) FROM commitq_jobs WHERE state <> 'completed'") == "0";
    });
    worker.stop(5s);

    // Attempts failed, and ran again, but each reservation counts once.
    const std::string left = examples::value(db, "SELECT pieces FROM stock");
    fmt::print("{} reservations, {} failed attempts, {} of {} teapots left\n", kReservations, mishaps.load(), left,
               kTeapots);
    examples::check(mishaps > 0, "some attempts failed half-way");
    examples::check(left == std::to_string(kTeapots - kReservations), "each reservation took one teapot");
}

int main() { return examples::run("tutorial_4_exactly_once", tutorial); }
