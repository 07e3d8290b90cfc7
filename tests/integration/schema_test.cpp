// Creating the tables: twice, at once, after a crash halfway, and with a library of another version.
#include "support/database.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <schema/migrations.h>

#include <atomic>
#include <thread>

namespace commitq::test {
namespace {

long tables(Database& database, std::string_view prefix = "commitq_") {
    return database.look().number(fmt::format(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema=DATABASE() AND table_name LIKE '{}%'", prefix));
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

INSTANTIATE_TEST_SUITE_P(
    Schema, OtherVersion,
    ::testing::Values(std::pair{"INSERT INTO commitq_schema VALUES (999,UTC_TIMESTAMP(6))", Errc::schema_too_new},
                      std::pair{"DELETE FROM commitq_schema", Errc::schema_missing},
                      std::pair{"DROP TABLE commitq_schema", Errc::schema_missing}),
    [](const auto& test) { return test.index == 0 ? "TooNew" : test.index == 1 ? "HalfMigrated" : "Missing"; });

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

TEST(SchemaTest, AProducerWithInsertPrivilegesOnlyCanEnqueue) {
    Database database;
    const std::string user = database.name().substr(0, 20) + "_p";
    for (const char* table : {"commitq_jobs", "commitq_payloads"}) {
        database.look().run(fmt::format("CREATE USER IF NOT EXISTS {}@'%' IDENTIFIED BY 'Pr0ducer-secret'", user));
        database.look().run(fmt::format("GRANT INSERT ON {}.{} TO {}@'%'", database.name(), table, user));
    }
    {
        ConnectOptions options = database.options();
        options.user = user;
        options.password = "Pr0ducer-secret";
        Connection db{options};
        const Queue queue{"q"};
        db.run("START TRANSACTION");
        queue.enqueue(db, "t", "{}");
        queue.enqueue(db, "t", std::string(5'000, 'x'));
        db.run("COMMIT");
    }
    EXPECT_EQ(database.count("pending"), 2);
    database.look().run(fmt::format("DROP USER {}@'%'", user));
}

TEST(SchemaTest, WorksUnderARequiredPrimaryKeyAndSafeUpdates) {
    Database database{false};
    if (database.is_mariadb()) {
        GTEST_SUCCEED() << "MariaDB has no sql_require_primary_key; its tables are the same";
    }
    for (const std::string& statement : Schema{database.options()}.pending()) {
        if (!database.is_mariadb()) {
            database.look().run("SET SESSION sql_require_primary_key = 1");
        }
        database.look().run("SET SESSION sql_safe_updates = 1");
        database.look().run(statement);
    }
    EXPECT_EQ(Schema{database.options()}.version(), Schema::kVersion);
}

}  // namespace
}  // namespace commitq::test
