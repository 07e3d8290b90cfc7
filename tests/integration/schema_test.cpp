// Creating the tables: twice, at once, after a crash halfway, and with a library of another version.
#include "support/database.h"
#include "support/private_server.h"
#include "unit/thrown.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <schema/migrations.h>
#include <store/schema.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace commitq::test {
namespace {

long tables(Database& database, std::string_view prefix = "commitq_") {
    return database.look().number(fmt::format(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema=DATABASE() AND table_name LIKE '{}%'",
        prefix));
}

TEST(SchemaTest, MigratesOnceAndThenHasNothingToDo) {
    Database database{false};
    const Schema schema{database.options()};
    EXPECT_EQ(schema.version(), 0);
    EXPECT_FALSE(schema.pending().empty());
    EXPECT_EQ(tables(database), 0) << "pending only says what it would do";
    EXPECT_EQ(schema.migrate(), Schema::kVersion);
    EXPECT_EQ(schema.version(), Schema::kVersion);
    EXPECT_EQ(schema.migrate(), 0);
    EXPECT_TRUE(schema.pending().empty());
    EXPECT_NO_THROW(schema.check());
}

TEST(SchemaTest, FourMigrateAtOnce) {
    Database database{false};
    std::atomic<int> applied{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { applied += Schema{database.options()}.migrate(); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(applied, Schema::kVersion);
    EXPECT_EQ(Schema{database.options()}.version(), Schema::kVersion);
}

TEST(SchemaTest, ACrashAfterAnyStatementIsMendedByRunningItAgain) {
    const auto statements = schema::statements(schema::migrations()[0], "commitq_");
    for (std::size_t done = 0; done <= statements.size(); ++done) {
        Database database{false};
        for (std::size_t i = 0; i < done; ++i) {
            database.look().run(statements[i]);
        }
        const Schema schema{database.options()};
        EXPECT_EQ(schema.version(), 0) << "not before the last statement";
        EXPECT_EQ(schema.migrate(), Schema::kVersion) << "after " << done << " statements";
        EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_duties"), 2);
    }
}

TEST(SchemaTest, PrefixesShareNothing) {
    Database database;
    Schema{database.options(), "other_"}.migrate();
    EXPECT_EQ(tables(database, "other_"), tables(database, "commitq_"));
    Connection db = database.connect();
    Queue{"q", {.prefix = "other_"}}.enqueue_autocommit(db, "t", "{}");
    EXPECT_EQ(database.count("pending"), 0);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM other_jobs"), 1);
}

class OtherVersion : public ::testing::TestWithParam<std::pair<const char*, Errc>> {};

TEST_P(OtherVersion, IsAClearErrorEverywhereAndCostsNoTransaction) {
    const auto& [change, expected] = GetParam();
    Database database;
    database.look().run(change);
    const auto code = [](auto call) {
        const auto error = thrown(call);
        return error ? error->code() : Errc::server;
    };

    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    EXPECT_EQ(code([&] { worker.start(); }), expected);
    EXPECT_EQ(code([&] { worker.run_once(); }), expected);
    Reaper reaper{database.options(), {}};
    EXPECT_EQ(code([&] { reaper.start(); }), expected);
    EXPECT_EQ(code([&] { reaper.reap_once(); }), expected);
    EXPECT_EQ(code([&] { Schema{database.options()}.check(); }), expected);

    Connection db = database.connect();
    db.run("CREATE TABLE orders (id INT PRIMARY KEY)");
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (1)");
    const Queue queue{"q"};
    const auto error = thrown([&] { queue.enqueue(db, "t", "{}"); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), expected);
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    db.run("COMMIT");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM orders"), 1);
    EXPECT_EQ(code([&] { queue.enqueue_autocommit(db, "t", "{}"); }), expected) << "also the second time";
}

INSTANTIATE_TEST_SUITE_P(Schema, OtherVersion,
                         ::testing::Values(std::pair{"INSERT INTO commitq_schema VALUES (999,UTC_TIMESTAMP(6))",
                                                     Errc::schema_too_new},
                                           std::pair{"DELETE FROM commitq_schema", Errc::schema_missing},
                                           std::pair{"DROP TABLE commitq_schema", Errc::schema_missing}),
                         [](const auto& test) {
                             return test.index == 0 ? "TooNew" : test.index == 1 ? "HalfMigrated" : "Missing";
                         });

TEST(SchemaTest, MigratingATooNewSchemaIsRefused) {
    Database database;
    database.look().run("INSERT INTO commitq_schema VALUES (999,UTC_TIMESTAMP(6))");
    const auto error = thrown([&] { Schema{database.options()}.migrate(); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::schema_too_new);
}

TEST(SchemaTest, C13_DdlCommitsTheCallersTransaction_FirstUseWithoutTablesRunsNone) {
    Database database{false};
    Connection db = database.connect();
    db.run("CREATE TABLE orders (id INT PRIMARY KEY)");
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (1)");
    const auto error = thrown([&] { Queue{"q"}.enqueue(db, "t", "{}"); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::schema_missing);
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    db.run("ROLLBACK");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM orders"), 0) << "nothing had been committed";
    EXPECT_EQ(tables(database), 0);
}

TEST(SchemaTest, AnOlderVersionThanTheLibrarysIsAClearError) {
    Database database;
    const mysql::Session session{database.options(), mysql::Purpose::library};
    const auto error = thrown(
        [&] { store::check_version(session.client(), store::Tables{"commitq_"}, Schema::kVersion + 1, "start"); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::schema_too_old);
    EXPECT_NE(std::string_view{error->what()}.find("migrate"), std::string_view::npos) << error->what();
}

/// What a server's administrator may have set for all sessions.
std::vector<std::string> strict_house_rules() {
    const char* kind = std::getenv("COMMITQ_SERVER_KIND");  // NOLINT(concurrency-mt-unsafe)
    const bool mariadb = kind != nullptr && std::string_view{kind} == "mariadb";
    return {mariadb ? "--innodb-force-primary-key=ON" : "--sql-require-primary-key=ON",
            "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE",
            "--transaction-isolation=SERIALIZABLE",
            "--autocommit=OFF",
            "--default-time-zone=+05:00",
            "--auto-increment-increment=7",
            "--auto-increment-offset=3",
            "--character-set-server=latin1"};
}

TEST(SchemaTest, C37_AnsiQuotesSafeUpdatesAndMandatoryPrimaryKeysForAllSessions_EverythingWorks) {
    const PrivateServer server{strict_house_rules()};
    Connection{server.options()}.run("SET GLOBAL sql_safe_updates = 1");
    Database database{server.options(), false};
    Schema{database.options()}.migrate();
    Connection db = database.connect();
    ASSERT_EQ(db.value("SELECT @@sql_safe_updates+@@autocommit"), "1");
    ASSERT_EQ(db.value("SELECT 'ab'='a'||'b'"), "1");

    const Queue queue{"q"};
    std::vector<JobId> ids;
    const std::vector<std::string> payloads{"done", "done" + std::string(3'000, '\\'), "retry", "dead", "tx"};
    db.run("START TRANSACTION");
    for (const std::string& payload : payloads) {
        ids.push_back(queue.enqueue(db, payload.substr(0, payload.find('\\')), payload));
    }
    const std::vector<NewJob> many(20, NewJob{.type = "done", .payload = "many"});
    const auto more = queue.enqueue_many(db, many);
    db.run("COMMIT");
    for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(database.job(ids[i], "payload"), payloads[i]);
    }
    EXPECT_EQ(database.job(more.back(), "payload"), "many");

    Worker worker{database.options(), {.queues = {"q"}, .lease = 2s, .retry = RetryPolicy::fixed(1h)}};
    worker.on("done", [](JobContext&) { return Outcome::done(); });
    worker.on("retry", [](JobContext&) { return Outcome::retry("it's \"no\" \\"); });
    worker.on("dead", [](JobContext&) { return Outcome::dead("it's \"no\" \\"); });
    worker.on("tx", [](JobContext& job) {
        Transaction tx = job.begin();
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 23 && database.count("dead") == 1; }));
    EXPECT_TRUE(worker.stop(10s).clean);
    EXPECT_EQ(database.job(ids[2], "last_error"), "it's \"no\" \\");

    db.run(
        "UPDATE commitq_jobs SET state='running',owner=x'01',attempt=1,max_attempts=9,started_at=UTC_TIMESTAMP(6),"
        "lease_until=UTC_TIMESTAMP(6)-INTERVAL 1 SECOND WHERE id=" +
        std::to_string(ids[2]));
    db.run("COMMIT");
    EXPECT_EQ(Reaper(database.options(), {}).reap_once().returned, 1U);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
