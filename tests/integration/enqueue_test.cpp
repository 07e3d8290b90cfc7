// One job: what is stored, what is returned, and what the caller's connection sees of it.
#include "support/database.h"
#include "support/server_facts.h"
#include "unit/thrown.h"

#include <commitq/testing.h>
#include <core/headers.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>

namespace commitq::test {
namespace {

std::string all_bytes() {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
        bytes += static_cast<char>(byte);
    }
    return bytes;
}

long payload_rows(Database& database) { return database.look().number("SELECT COUNT(*) FROM commitq_payloads"); }
long job_rows(Database& database) { return database.look().number("SELECT COUNT(*) FROM commitq_jobs"); }

JobId enqueue_committed(Connection& db, const Queue& queue, std::string_view payload,
                        const EnqueueOptions& options = {}) {
    db.run("START TRANSACTION");
    const JobId id = queue.enqueue(db, "t", payload, options);
    db.run("COMMIT");
    return id;
}

// ------------------------------------------------------------------------------------------------ what is stored

TEST(Enqueue, WithoutOptionsTheJobIsDueNowWithTheDefaults) {
    Database database;
    Connection db = database.connect();
    const JobId id = enqueue_committed(db, Queue{"orders"}, "payload");
    EXPECT_EQ(database.job(id, "CONCAT_WS('|',queue,type,state,priority,attempt,max_attempts,payload_size,payload)"),
              "orders|t|pending|5|0|0|7|payload");
    EXPECT_EQ(database.job(id, "available_at=created_at"), "1");
    EXPECT_EQ(database.job(id, "headers"), "");
    EXPECT_EQ(database.job(id, "COALESCE(owner,lease_until,started_at,finished_at,last_error,'none')"), "none");
    EXPECT_EQ(database.violations(), "");
}

TEST(Enqueue, EveryOptionIsInTheRow) {
    Database database;
    Connection db = database.connect();
    const Headers headers{{"traceparent", "00-4bf92f-01"}, {"who", "Zoë 😀"}};
    const JobId id = enqueue_committed(db, Queue{"orders"}, "",
                                       {.priority = 0, .delay = 1h + 1us, .max_attempts = 10'000, .headers = headers});
    EXPECT_EQ(database.job(id, "priority"), "0");
    EXPECT_EQ(database.job(id, "TIMESTAMPDIFF(MICROSECOND,created_at,available_at)"), "3600000001");
    EXPECT_EQ(database.job(id, "max_attempts"), "10000");
    EXPECT_EQ(database.job(id, "headers"), "traceparent: 00-4bf92f-01\nwho: Zoë 😀\n");
    EXPECT_EQ(database.violations(), "");
}

TEST(Enqueue, AnAbsoluteTimeIsStoredToTheMicrosecond) {
    Database database;
    Connection db = database.connect();
    using namespace std::chrono;
    const system_clock::time_point at = sys_days{2051y / 2 / 28} + 23h + 59min + 59s + 999'999us;
    const JobId id = enqueue_committed(db, Queue{"q"}, "", {.at = at});
    EXPECT_EQ(database.job(id, "available_at"), "2051-02-28 23:59:59.999999");
}

TEST(Enqueue, AnAbsoluteTimeInThePastMeansNow) {
    Database database;
    Connection db = database.connect();
    const JobId id =
        enqueue_committed(db, Queue{"q"}, "", {.at = std::chrono::sys_days{std::chrono::year{1999} / 1 / 1}});
    EXPECT_EQ(database.job(id, "available_at=created_at"), "1");
}

TEST(Enqueue, GoesIntoTheTablesOfItsPrefixAndDatabase) {
    Database here;
    Database there{false};
    Schema{there.options(), "own_"}.migrate();
    Connection db = here.connect();
    const JobId id = enqueue_committed(db, Queue{"q", {.prefix = "own_", .database = there.name()}}, kLongPayload);
    EXPECT_EQ(job_rows(here), 0);
    EXPECT_EQ(there.look().value(fmt::format("SELECT payload FROM own_jobs_view WHERE id={}", id)), kLongPayload);
}

// ------------------------------------------------------------------------------------------------ commit, rollback

class EnqueueAtIsolation : public ::testing::TestWithParam<std::string> {};

TEST_P(EnqueueAtIsolation, RollbackLeavesNothingCommitLeavesAll) {
    Database database;
    Connection db = database.connect();
    db.run("SET SESSION TRANSACTION ISOLATION LEVEL " + GetParam());
    const Queue queue{"q"};
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        db.run("START TRANSACTION");
        queue.enqueue(db, "t", payload);
        db.run("ROLLBACK");
    }
    EXPECT_EQ(job_rows(database), 0);
    EXPECT_EQ(payload_rows(database), 0);
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        EXPECT_EQ(database.job(enqueue_committed(db, queue, payload), "payload"), payload);
    }
    EXPECT_EQ(job_rows(database), 2);
    EXPECT_EQ(payload_rows(database), 1);
    EXPECT_EQ(database.violations(), "");
}

INSTANTIATE_TEST_SUITE_P(Levels, EnqueueAtIsolation,
                         ::testing::Values("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
                         [](const auto& test) {
                             std::string name = test.param;
                             std::replace(name.begin(), name.end(), ' ', '_');
                             return name;
                         });

TEST(Enqueue, UncommittedJobsAreSeenByNobodyElse) {
    Database database;
    Connection db = database.connect();
    db.run("START TRANSACTION");
    const JobId id = Queue{"q"}.enqueue(db, "t", kLongPayload);
    EXPECT_EQ(job_rows(database), 0);
    EXPECT_EQ(db.value(fmt::format("SELECT payload FROM commitq_jobs_view WHERE id={}", id)), kLongPayload);
}

TEST(Enqueue, RollbackToASavepointTakesBackOnlyWhatCameAfterIt) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    db.run("START TRANSACTION");
    const JobId kept = queue.enqueue(db, "t", "kept");
    db.run("SAVEPOINT here");
    queue.enqueue(db, "t", kLongPayload);
    db.run("ROLLBACK TO SAVEPOINT here");
    const JobId after = queue.enqueue(db, "t", "after");
    db.run("COMMIT");
    EXPECT_EQ(job_rows(database), 2);
    EXPECT_EQ(payload_rows(database), 0);
    EXPECT_EQ(database.job(kept, "payload"), "kept");
    EXPECT_EQ(database.job(after, "payload"), "after");
}

TEST(Enqueue, TwoOpenTransactionsOnOneQueueDoNotWaitForEachOther) {
    Database database;
    const Queue queue{"q"};
    std::vector<Connection> producers;
    for (int i = 0; i < 4; ++i) {
        Connection& db = producers.emplace_back(database.options());
        db.run("SET SESSION innodb_lock_wait_timeout = 1");
        db.run("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
        db.run("START TRANSACTION");
        queue.enqueue(db, "t", "short");
        queue.enqueue(db, "t", kLongPayload);
    }
    for (Connection& db : producers) {
        db.run("COMMIT");
    }
    EXPECT_EQ(job_rows(database), 8);
}

// ------------------------------------------------------------------------------------------------ XA, autocommit=0

std::string xid(const Database& database) { return fmt::format("'{}'", database.name()); }

TEST(Enqueue, InsideXaPreparedAndCommitted) {
    Database database;
    Connection db = database.connect();
    db.run("XA START " + xid(database));
    const JobId id = Queue{"q"}.enqueue(db, "t", kLongPayload);
    db.run("XA END " + xid(database));
    db.run("XA PREPARE " + xid(database));
    EXPECT_EQ(job_rows(database), 0);
    db.run("XA COMMIT " + xid(database));
    EXPECT_EQ(database.job(id, "payload"), kLongPayload);
}

TEST(Enqueue, InsideXaRolledBack) {
    Database database;
    Connection db = database.connect();
    db.run("XA START " + xid(database));
    Queue{"q"}.enqueue(db, "t", kLongPayload);
    db.run("XA END " + xid(database));
    db.run("XA ROLLBACK " + xid(database));
    EXPECT_EQ(job_rows(database), 0);
    EXPECT_EQ(payload_rows(database), 0);
}

TEST(Enqueue, AfterXaEndTheServerRefusesAndTheBranchCanStillCommit) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    db.run("XA START " + xid(database));
    const JobId id = queue.enqueue(db, "t", "in it");
    db.run("XA END " + xid(database));
    const auto error = thrown([&] { queue.enqueue(db, "t", "too late"); });
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->code() == Errc::server || error->code() == Errc::not_in_transaction) << error->what();
    db.run("XA COMMIT " + xid(database) + " ONE PHASE");
    EXPECT_EQ(job_rows(database), 1);
    EXPECT_EQ(database.job(id, "payload"), "in it");
}

TEST(Enqueue, WithAutocommitOffTheJobWaitsForTheCommit) {
    Database database;
    Connection db = database.connect();
    db.run("CREATE TABLE orders (id INT PRIMARY KEY)");
    db.run("SET SESSION autocommit = 0");
    const Queue queue{"q"};
    db.run("INSERT INTO orders VALUES (1)");
    queue.enqueue(db, "t", "first");
    db.run("ROLLBACK");
    EXPECT_EQ(job_rows(database), 0);
    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "second");
    EXPECT_EQ(job_rows(database), 0);
    db.run("COMMIT");
    EXPECT_EQ(job_rows(database), 1);
}

TEST(Enqueue, WithAutocommitOffAndNothingDoneYetThereIsNoTransaction) {
    Database database;
    Connection db = database.connect();
    db.run("SET SESSION autocommit = 0");
    const auto error = thrown([&] { Queue{"q"}.enqueue(db, "t", "x"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::not_in_transaction);
}

// ------------------------------------------------------------------------------------------------ enqueue_autocommit

TEST(EnqueueAutocommit, CommitsByItself) {
    Database database;
    Connection db = database.connect();
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        const JobId id = Queue{"q"}.enqueue_autocommit(db, "t", payload, {.priority = 1});
        EXPECT_EQ(database.job(id, "payload"), payload);
        EXPECT_EQ(database.job(id, "priority"), "1");
    }
    EXPECT_EQ(database.violations(), "");
}

TEST(EnqueueAutocommit, IsRefusedWhereTheCallersTransactionWouldTakeItIn) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    const auto expect_refused = [&] {
        const auto error = thrown([&] { queue.enqueue_autocommit(db, "t", "x"); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::wrong_state);
    };
    db.run("START TRANSACTION");
    expect_refused();
    db.run("ROLLBACK");
    db.run("SET SESSION autocommit = 0");
    expect_refused();
    db.run("SELECT COUNT(*) FROM commitq_jobs");
    expect_refused();
    db.run("COMMIT");
    EXPECT_EQ(job_rows(database), 0);
}

// ------------------------------------------------------------------------------------------------ ids

TEST(Enqueue, TheIdIsTheRealOneWhateverTheIncrement) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    for (const auto& [increment, offset] : {std::pair{1, 1}, {7, 3}, {2, 2}, {1, 1}}) {
        db.run(fmt::format("SET SESSION auto_increment_increment={}, SESSION auto_increment_offset={}", increment,
                           offset));
        for (const std::string& payload :
             {fmt::format("short {}", increment), fmt::format("{} {}", increment, kLongPayload)}) {
            EXPECT_EQ(database.job(enqueue_committed(db, queue, payload), "payload"), payload) << increment;
        }
    }
    EXPECT_EQ(database.violations(), "");
}

TEST(Enqueue, ConcurrentProducersGetTheirOwnIds) {
    Database database;
    const Queue queue{"q"};  // one for all: it is thread-safe
    constexpr int kThreads = 8;
    constexpr int kEach = 50;
    std::vector<std::vector<std::pair<JobId, std::string>>> made(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            Connection db = database.connect();
            db.run(fmt::format("SET SESSION auto_increment_increment={}", 1 + i % 3));
            for (int j = 0; j < kEach; ++j) {
                const std::string payload = fmt::format("{}-{}-{}", i, j, std::string(j % 5 == 0 ? 2'000 : 10, 'y'));
                made[static_cast<std::size_t>(i)].emplace_back(enqueue_committed(db, queue, payload), payload);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    std::set<JobId> ids;
    for (const auto& of_thread : made) {
        for (const auto& [id, payload] : of_thread) {
            EXPECT_TRUE(ids.insert(id).second) << id;
            EXPECT_EQ(database.job(id, "payload"), payload);
        }
    }
    EXPECT_EQ(ids.size(), std::size_t{kThreads * kEach});
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------------ the caller's session

constexpr std::array kCharsets{"latin1", "utf8mb4", "gbk", "sjis", "big5", "cp932", "binary"};
constexpr std::array kSqlModes{"",
                               "ANSI_QUOTES",
                               "NO_BACKSLASH_ESCAPES",
                               "STRICT_TRANS_TABLES",
                               "STRICT_ALL_TABLES",
                               "TRADITIONAL",
                               "ANSI",
                               "PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE",
                               "NO_UNSIGNED_SUBTRACTION,NO_ZERO_DATE,NO_ZERO_IN_DATE",
                               "TIME_TRUNCATE_FRACTIONAL"};

/// Everything that a session's settings could change on the way into the row.
void expect_stored_as_it_is(Database& database, Connection& db, const Queue& queue) {
    const std::string bytes = all_bytes() + R"('"\'; -- \0 \x5c)" + "\x5c\x95\x5c'";
    const std::string fat = bytes + std::string(3'000, '\\') + bytes;
    const Headers headers{{"h", "a\\'b\"c Zoë 漢字 😀"}};
    using namespace std::chrono;
    const system_clock::time_point at = sys_days{2033y / 3 / 27} + 2h + 30min + 123'456us;
    for (const std::string& payload : {bytes, fat}) {
        const JobId id = enqueue_committed(db, queue, payload, {.at = at, .headers = headers});
        EXPECT_EQ(database.job(id, "payload"), payload);
        EXPECT_EQ(database.job(id, "headers"), core::encode_headers(headers));
        EXPECT_EQ(database.job(id, "available_at"), "2033-03-27 02:30:00.123456");
        EXPECT_EQ(database.job(id, "queue"), R"(q'"\`%)");
        const JobId delayed = enqueue_committed(db, queue, payload, {.delay = 10min});
        EXPECT_EQ(database.job(delayed, "TIMESTAMPDIFF(MICROSECOND,created_at,available_at)"), "600000000");
    }
}

TEST(Enqueue, C33_C37_NoCharacterSetAndNoSqlModeChangesAnything) {
    Database database;
    Connection db = database.connect();
    const Queue queue{R"(q'"\`%)"};
    for (const char* mode : kSqlModes) {
        if (database.is_mariadb() == (std::string_view{mode} == "TIME_TRUNCATE_FRACTIONAL")) {
            continue;  // each server has its own name for it
        }
        db.run(fmt::format("SET SESSION sql_mode = '{}'", mode));
        for (const char* charset : kCharsets) {
            SCOPED_TRACE(fmt::format("sql_mode '{}', charset {}", mode, charset));
            db.run(fmt::format("SET NAMES {}", charset));
            expect_stored_as_it_is(database, db, queue);
        }
    }
    EXPECT_EQ(database.violations(), "");
}

TEST(Enqueue, CharacterSetsThatTheClientKnowsOfChangeNothing) {
    Database database;
    Connection db = database.connect();
    const Queue queue{R"(q'"\`%)"};
    for (const char* charset : kCharsets) {
        SCOPED_TRACE(charset);
        ASSERT_EQ(mysql_set_character_set(db, charset), 0) << mysql_error(db);
        expect_stored_as_it_is(database, db, queue);
    }
}

TEST(Enqueue, C37_SafeUpdatesAndAMandatoryPrimaryKeyAreNoObstacle) {
    Database database;
    Connection db = database.connect();
    db.run("SET SESSION sql_safe_updates = 1");
    if (!database.is_mariadb()) {
        db.run("SET SESSION sql_require_primary_key = 1");
        db.run("SET SESSION sql_generate_invisible_primary_key = 1");
    }
    db.run("SET SESSION sql_select_limit = 1, SESSION max_join_size = 1, SESSION sql_quote_show_create = 0");
    const Queue queue{"q"};
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        EXPECT_EQ(database.job(enqueue_committed(db, queue, payload), "payload"), payload);
    }
}

TEST(Enqueue, TheSessionIsAsBefore) {
    Database database;
    Connection db = database.connect();
    db.run("SET NAMES latin1");
    db.run("SET SESSION sql_mode = 'ANSI', SESSION time_zone = '+05:00'");
    const Queue queue{"q"};
    const auto before = session_variables(db);
    ASSERT_GT(before.size(), 300U);
    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "short");
    queue.enqueue(db, "t", kLongPayload);
    EXPECT_THAT(changed(before, session_variables(db)), ::testing::IsEmpty());
    db.run("COMMIT");
    queue.enqueue_autocommit(db, "t", kLongPayload);
    EXPECT_THAT(changed(before, session_variables(db)), ::testing::IsEmpty());
}

// ------------------------------------------------------------------------------------------------ what is sent

TEST(Enqueue, SendsInsertsAndNothingElse) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    db.run("START TRANSACTION");
    SessionCounters sent{db, kStatements};
    queue.enqueue(db, "t", "first");
    EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Com_select", 1}, {"Questions", 2}})) << "reads the version";
    for (const std::size_t size : {std::size_t{0}, std::size_t{1'024}}) {
        queue.enqueue(db, "t", std::string(size, 'x'));
        EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Questions", 1}})) << size;
    }
    for (const std::size_t size : {std::size_t{1'025}, std::size_t{15'000}}) {
        queue.enqueue(db, "t", std::string(size, 'x'));
        EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 2}, {"Questions", 2}})) << size;
    }
    queue.enqueue(db, "t", std::string(16'385, 'x'));
    EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 2}, {"Com_select", 1}, {"Questions", 3}}))
        << "asks for the limits";
    db.run("COMMIT");
    sent.since();
    queue.enqueue_autocommit(db, "t", "x");
    EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Questions", 1}}));
}

TEST(Enqueue, ACopyOfAQueueDoesNotReadTheVersionAgain) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    const Queue copy = queue;  // NOLINT(performance-unnecessary-copy-initialization): the test is about the copy
    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "x");
    SessionCounters sent{db, kStatements};
    copy.enqueue(db, "t", "x");
    EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Questions", 1}}));
}

TEST(Enqueue, InAHandlersTransactionTheJobCommitsWithIt) {
    Database database;
    const JobId first = database.enqueue("q", "first");
    const Queue queue{"q"};
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("first", [&](JobContext& job) {
        Transaction tx = job.begin();
        queue.enqueue(tx, "second", "from the first");
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    EXPECT_EQ(worker.run_once(), 1U);
    EXPECT_EQ(database.job(first, "state"), "completed");
    EXPECT_EQ(database.look().value("SELECT payload FROM commitq_jobs WHERE type='second'"), "from the first");
}

}  // namespace
}  // namespace commitq::test
