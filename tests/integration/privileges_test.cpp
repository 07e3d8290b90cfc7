// Each role of docs/operations.md does its work with the privileges that stand there, and no others.
#include "support/account.h"
#include "support/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace commitq::test {
namespace {

/// The statement of docs/operations.md that deletes finished jobs of the queue `orders`.
std::string delete_statement() {
    std::ifstream page{std::string{COMMITQ_SOURCE_DIR} + "/docs/operations.md"};
    std::string statement;
    for (std::string line; std::getline(page, line) && !statement.ends_with(";");) {
        if (!statement.empty() || line.starts_with("DELETE ")) {
            statement += " " + line;
        }
    }
    return statement;
}

TEST(Privileges, OfAProducerSufficeToEnqueue) {
    Database database;
    const Account account{database, "p", grants_to("producer", database)};
    Connection db{account.options()};
    const Queue queue{"q"};
    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "{}");
    queue.enqueue(db, "t", kLongPayload);
    queue.enqueue_many(db, std::vector<NewJob>(50, NewJob{.type = "t", .payload = kLongPayload}));
    db.run("COMMIT");
    queue.enqueue_autocommit(db, "t", "{}");
    EXPECT_EQ(database.count("pending"), 53);
    EXPECT_EQ(db.try_run("SELECT id FROM commitq_jobs"), 1142U) << "and not to read";
}

TEST(Privileges, OfAProducerAreTooFew_SaidSoAndTheTransactionIsIntact) {
    Database database;
    const Account account{database, "f", {grants_to("producer", database).front()}};
    Connection db{account.options()};
    const Queue queue{"q"};
    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "before");
    try {
        queue.enqueue(db, "t", kLongPayload);
        ADD_FAILURE() << "it may not write payloads";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::access_denied) << error.what();
        EXPECT_EQ(error.transaction(), TransactionState::intact);
        EXPECT_EQ(error.repeat(), Repeat::never);
    }
    queue.enqueue(db, "t", "after");
    db.run("COMMIT");
    EXPECT_EQ(database.count("pending"), 2);
}

TEST(Privileges, OfAWorkerSufficeForAllThatItDoes) {
    Database database;
    const Account account{database, "w", grants_to("worker", database)};
    const auto recorder = std::make_shared<Recorder>();
    {
        Worker worker{account.options(), {.queues = {"q"}, .lease = 1s, .heartbeat = 100ms, .observer = recorder}};
        worker.on("done", [](JobContext&) { return Outcome::done(); });
        worker.on("retry", [](JobContext&) { return Outcome::retry("again", 1h); });
        worker.on("snooze", [](JobContext&) { return Outcome::snooze(1h); });
        worker.on("dead", [](JobContext&) { return Outcome::dead("no"); });
        worker.on("cancel", [](JobContext&) { return Outcome::cancel(); });
        worker.on("exactly_once", [](JobContext& job) {
            auto tx = job.begin();
            job.complete_in(tx);
            tx.commit();
            return Outcome::done();
        });
        worker.start();
        for (const char* type : {"done", "retry", "snooze", "dead", "cancel", "exactly_once"}) {
            database.enqueue("q", type, kLongPayload);
        }
        const JobId orphan = database.enqueue("q", "nobody's");
        database.look().run(
            fmt::format("UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=9,"
                        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE id={}",
                        orphan));
        for (const char* event : {"completed", "retried", "snoozed", "dead", "cancelled"}) {
            EXPECT_TRUE(eventually([&] { return recorder->count(event) >= 1; })) << event;
        }
        EXPECT_TRUE(eventually([&] { return recorder->count("completed") == 2 && recorder->returned() == 1; }));
        EXPECT_TRUE(eventually([&] { return worker.health().since_heartbeat.has_value(); }));
        EXPECT_TRUE(worker.stop(60s).clean);
    }
    EXPECT_EQ(recorder->error_text(), "");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_workers"), 0);
    EXPECT_EQ(database.violations(), "");
}

TEST(Privileges, OfAnAdminSufficeToLookAndToDeleteFinishedJobs) {
    Database database;
    const Account account{database, "a", grants_to("admin", database)};
    Connection db{account.options()};
    const auto ids = database.enqueue_many("orders", "t", 3);
    const JobId fat = database.enqueue("orders", "t", kLongPayload);
    const JobId recent = database.enqueue("orders", "t", kLongPayload);
    database.look().run(
        fmt::format("UPDATE commitq_jobs SET state='completed',attempt=1,finished_at=UTC_TIMESTAMP(6) - INTERVAL"
                    " IF(id={},1,8) DAY WHERE id>{}",
                    recent, ids.front()));
    for (const char* table : {"jobs", "payloads", "jobs_view", "queues", "workers", "schema"}) {
        EXPECT_EQ(db.try_run(fmt::format("SELECT * FROM commitq_{}", table)), 0U) << table;
    }
    db.run(delete_statement());
    EXPECT_EQ(db.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM commitq_jobs"),
              fmt::format("{},{}", ids.front(), recent));
    EXPECT_EQ(db.number("SELECT COUNT(*) FROM commitq_payloads"), 1) << "that of the recent job, not of " << fat;
    EXPECT_EQ(db.try_run("UPDATE commitq_jobs SET state='pending'"), 1142U) << "and not to change jobs";
}

TEST(Privileges, OfAMigratorSufficeToMigrate) {
    Database database{false};
    const Account account{database, "m", grants_to("migrator", database)};
    const Schema schema{account.options()};
    EXPECT_EQ(schema.migrate(), Schema::kVersion);
    EXPECT_EQ(schema.migrate(), 0);
    EXPECT_NO_THROW(schema.check());
}

}  // namespace
}  // namespace commitq::test
