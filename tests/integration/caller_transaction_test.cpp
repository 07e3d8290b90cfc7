// What an error in enqueue leaves of the caller's own transaction, and what happens if the caller goes on.
#include "support/database.h"
#include "support/private_server.h"
#include "support/server_facts.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

namespace commitq::test {
namespace {

/// A caller with an order table, and somebody else who holds locks.
class CallersTransaction : public ::testing::Test {
protected:
    explicit CallersTransaction(const ConnectOptions& server = server_options()) : database{server} {
        db.run("CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))");
        db.run("INSERT INTO orders VALUES (1,'stock')");
        db.run("CREATE TABLE digits (id INT PRIMARY KEY)");
        db.run("INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)");
        db.run("CREATE TABLE heavy (id INT PRIMARY KEY)");
        db.run("SET SESSION innodb_lock_wait_timeout = 1");
        other.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    }

    /// In an open transaction at REPEATABLE READ: locks the gap behind the last row, where the next one belongs.
    void lock_the_end_of(std::string_view table) {
        if (table == "commitq_jobs") {  // '~' sorts behind all names, so no row that is there is touched
            other.run("SELECT id FROM commitq_jobs FORCE INDEX (claim) WHERE queue='~' FOR UPDATE");
        } else {
            other.run(fmt::format("SELECT COUNT(*) FROM {} FORCE INDEX (PRIMARY) FOR UPDATE", table));
        }
    }

    /// The other's transaction makes each INSERT into @p table wait.
    void hold_the_end_of(std::string_view table) {
        other.run("START TRANSACTION");
        lock_the_end_of(table);
    }

    /// Runs @p insert in the caller's open transaction, which holds the order row, so that it deadlocks with the other's
    /// transaction, and the server ends the caller's: the other has changed more rows.
    template <class Insert>
    std::optional<Error> deadlock_in(Insert insert, std::string_view table = "commitq_jobs") {
        db.run("SET SESSION innodb_lock_wait_timeout = 100");
        other.run("START TRANSACTION");
        other.run("INSERT INTO heavy SELECT a.id+10*b.id+100*c.id FROM digits a, digits b, digits c");
        lock_the_end_of(table);
        unsigned failed = 0;
        std::thread waiting{[&] { failed = other.try_run("UPDATE orders SET note='other' WHERE id=1"); }};
        EXPECT_TRUE(eventually([&] { return waits_for_a_lock(database.look(), other.id()); }));
        auto error = thrown(insert);
        waiting.join();
        EXPECT_EQ(failed, 0U) << "the caller's transaction is the one that ends";
        other.run("ROLLBACK");
        return error;
    }

    long jobs() { return database.look().number("SELECT COUNT(*) FROM commitq_jobs"); }
    long payloads() { return database.look().number("SELECT COUNT(*) FROM commitq_payloads"); }
    long orders() { return database.look().number("SELECT COUNT(*) FROM orders"); }

    static void expect_deadlock(const std::optional<Error>& error) {
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::deadlock) << error->what();
        EXPECT_EQ(error->server_errno(), 1213U);
        EXPECT_EQ(error->sqlstate(), "40001");
        EXPECT_EQ(error->transaction(), TransactionState::rolled_back);
        EXPECT_EQ(error->repeat(), Repeat::transaction);
    }

    /// Every way to enqueue inside a transaction is refused on the caller's connection, by each Queue, with nothing sent.
    void expect_refused_everywhere() {
        const Queue another{"another"};
        const std::vector<NewJob> many(3, NewJob{.type = "t", .payload = "x"});
        for (const Queue* each : {&queue, &another}) {
            for (const auto& call : {std::function<void()>{[&] { each->enqueue(db, "t", "x"); }},
                                     std::function<void()>{[&] { each->enqueue(db, "t", kLongPayload); }},
                                     std::function<void()>{[&] { each->enqueue_many(db, many); }}}) {
                const auto error = thrown(call);
                ASSERT_TRUE(error);
                EXPECT_EQ(error->code(), Errc::not_in_transaction) << error->what();
            }
        }
    }

    Database database;
    Connection db = database.connect();
    Connection other = database.connect();
    const Queue queue{"q"};
};

// ------------------------------------------------------------------------------------------------ deadlock

TEST_F(CallersTransaction, C11_DeadlockInEnqueue_CallerGoesOn_NothingOfItSurvives) {
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (2,'new')");
    queue.enqueue(db, "t", "before");
    db.run("UPDATE orders SET note='mine' WHERE id=1");
    expect_deadlock(deadlock_in([&] { queue.enqueue(db, "t", "deadlocks"); }));
    expect_refused_everywhere();
    db.run("ROLLBACK");
    expect_refused_everywhere();
    EXPECT_EQ(jobs(), 0);
    EXPECT_EQ(orders(), 1);

    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "again");
    db.run("COMMIT");
    EXPECT_EQ(database.look().value("SELECT GROUP_CONCAT(payload) FROM commitq_jobs"), "again");
}

TEST_F(CallersTransaction, C11_DeadlockInEnqueueOfALongPayload_CallerGoesOn_NothingOfItSurvives) {
    for (const std::string_view table : {"commitq_jobs", "commitq_payloads"}) {
        SCOPED_TRACE(table);
        db.run("START TRANSACTION");
        db.run("UPDATE orders SET note='mine' WHERE id=1");
        expect_deadlock(deadlock_in([&] { queue.enqueue(db, "t", kLongPayload); }, table));
        expect_refused_everywhere();
        db.run("ROLLBACK");
    }
    EXPECT_EQ(jobs(), 0);
    EXPECT_EQ(payloads(), 0);
}

TEST_F(CallersTransaction, C11_DeadlockInEnqueueMany_CallerGoesOn_NothingOfItSurvives) {
    const std::vector<NewJob> many(30, NewJob{.type = "t", .payload = kLongPayload});
    db.run("START TRANSACTION");
    db.run("UPDATE orders SET note='mine' WHERE id=1");
    expect_deadlock(deadlock_in([&] { queue.enqueue_many(db, many); }));
    expect_refused_everywhere();
    db.run("COMMIT");
    EXPECT_EQ(jobs(), 0);
    EXPECT_EQ(payloads(), 0);
}

TEST_F(CallersTransaction, C11_DeadlockWithAutocommitOff_CallerGoesOn_NothingOfItSurvives) {
    db.run("SET SESSION autocommit = 0");
    db.run("UPDATE orders SET note='mine' WHERE id=1");
    expect_deadlock(deadlock_in([&] { queue.enqueue(db, "t", "deadlocks"); }));
    expect_refused_everywhere();
    db.run("ROLLBACK");
    expect_refused_everywhere();
    EXPECT_EQ(jobs(), 0);
    // The next statement on a table begins the next transaction.
    db.run("UPDATE orders SET note='next' WHERE id=1");
    queue.enqueue(db, "t", "next");
    db.run("COMMIT");
    EXPECT_EQ(jobs(), 1);
}

TEST_F(CallersTransaction, C11_DeadlockInXa_TheBranchCanOnlyBeRolledBack) {
    const std::string xid = fmt::format("'{}'", database.name());
    db.run("XA START " + xid);
    db.run("UPDATE orders SET note='mine' WHERE id=1");
    expect_deadlock(deadlock_in([&] { queue.enqueue(db, "t", "deadlocks"); }));
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        const auto error = thrown([&] { queue.enqueue(db, "t", payload); });
        ASSERT_TRUE(error);
        EXPECT_TRUE(error->code() == Errc::not_in_transaction || error->transaction() == TransactionState::rolled_back)
            << error->what();
    }
    db.try_run("XA END " + xid);
    db.run("XA ROLLBACK " + xid);
    EXPECT_EQ(jobs(), 0);
    EXPECT_EQ(payloads(), 0);
    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "again");
    db.run("COMMIT");
    EXPECT_EQ(jobs(), 1);
}

TEST_F(CallersTransaction, C11_DeadlockWhileTheVersionIsReadAtSerializable_CallerGoesOn_NothingOfItSurvives) {
    db.run("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    db.run("START TRANSACTION");
    db.run("UPDATE orders SET note='mine' WHERE id=1");
    expect_deadlock(deadlock_in([&] { queue.enqueue(db, "t", "deadlocks"); }, "commitq_schema"));
    expect_refused_everywhere();
    db.run("ROLLBACK");
    EXPECT_EQ(jobs(), 0);
}

// ------------------------------------------------------------------------------------------------ lock wait timeout

TEST_F(CallersTransaction, C12_LockTimeoutInEnqueue_TheEarlierStatementsAreStillThere) {
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (2,'new')");
    hold_the_end_of("commitq_jobs");
    const auto error = thrown([&] { queue.enqueue(db, "t", "times out"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::lock_timeout) << error->what();
    EXPECT_EQ(error->server_errno(), 1205U);
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    EXPECT_EQ(error->repeat(), Repeat::statement);
    other.run("ROLLBACK");
    queue.enqueue(db, "t", "repeated");  // the statement alone, as the error says
    db.run("COMMIT");
    EXPECT_EQ(orders(), 2);
    EXPECT_EQ(database.look().value("SELECT GROUP_CONCAT(payload) FROM commitq_jobs"), "repeated");
}

TEST_F(CallersTransaction, C12_LockTimeoutAfterThePayloadWasWritten_SaysThatAPartIsThere) {
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (2,'new')");
    hold_the_end_of("commitq_jobs");
    const auto error = thrown([&] { queue.enqueue(db, "t", kLongPayload); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::lock_timeout);
    EXPECT_EQ(error->transaction(), TransactionState::partial);
    EXPECT_EQ(error->repeat(), Repeat::transaction);
    other.run("ROLLBACK");
    db.run("ROLLBACK");
    EXPECT_EQ(payloads(), 0);
    EXPECT_EQ(orders(), 1);
}

struct ServerThatRollsBackOnTimeout {
    PrivateServer server{{"--innodb-rollback-on-timeout=ON"}};  // can't be changed while a server runs
};

class CallersTransactionWithRollbackOnTimeout : private ServerThatRollsBackOnTimeout, public CallersTransaction {
protected:
    CallersTransactionWithRollbackOnTimeout() : CallersTransaction{server.options()} {}
};

TEST_F(CallersTransactionWithRollbackOnTimeout, C12_LockTimeoutThatRollsBackAll_SaysSoAndRefusesToGoOn) {
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        db.run("START TRANSACTION");
        db.run("INSERT INTO orders VALUES (2,'new')");
        queue.enqueue(db, "t", "before");
        hold_the_end_of("commitq_jobs");
        const auto error = thrown([&] { queue.enqueue(db, "t", payload); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::lock_timeout) << error->what();
        EXPECT_EQ(error->transaction(), TransactionState::rolled_back);
        EXPECT_EQ(error->repeat(), Repeat::transaction);
        other.run("ROLLBACK");
        expect_refused_everywhere();
        db.run("COMMIT");
        EXPECT_EQ(orders(), 1);
        EXPECT_EQ(jobs(), 0);
        EXPECT_EQ(payloads(), 0);
    }
    db.run("START TRANSACTION");
    queue.enqueue(db, "t", "again");
    db.run("COMMIT");
    EXPECT_EQ(jobs(), 1);
}

TEST_F(CallersTransaction, ALockTimeoutInEnqueueAutocommitLeavesNoJob) {
    hold_the_end_of("commitq_jobs");
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        const auto error = thrown([&] { queue.enqueue_autocommit(db, "t", payload); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::lock_timeout);
        EXPECT_EQ(error->transaction(), TransactionState::none);
        EXPECT_EQ(error->repeat(), Repeat::statement);
    }
    other.run("ROLLBACK");
    EXPECT_EQ(jobs(), 0);
    queue.enqueue_autocommit(db, "t", "again");
    EXPECT_EQ(jobs(), 1);
}

// ------------------------------------------------------------------------------------------------ no tables

TEST_F(CallersTransaction, C13_FirstEnqueueWithoutTables_NoTableIsMadeAndNothingIsCommitted) {
    const Queue elsewhere{"q", {.prefix = "not_there_"}};
    for (const std::string_view end : {"ROLLBACK", "COMMIT"}) {
        db.run("START TRANSACTION");
        db.run("INSERT INTO orders VALUES (2,'new')");
        const auto error = thrown([&] { elsewhere.enqueue(db, "t", "x"); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::schema_missing) << error->what();
        EXPECT_EQ(error->transaction(), TransactionState::intact);
        EXPECT_EQ(error->repeat(), Repeat::never);
        EXPECT_EQ(orders(), 1) << "nobody has committed yet";
        db.run(end);
        EXPECT_EQ(orders(), end == "COMMIT" ? 2 : 1);
    }
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema=DATABASE()"
                                     " AND table_name LIKE 'not\\_there%'"),
              0);
}

TEST_F(CallersTransaction, OnceTheTablesAreThereTheSameQueueWorks) {
    const Queue late{"q", {.prefix = "late_"}};
    db.run("START TRANSACTION");
    EXPECT_TRUE(thrown([&] { late.enqueue(db, "t", "x"); }));
    db.run("ROLLBACK");
    Schema{database.options(), "late_"}.migrate();
    db.run("START TRANSACTION");
    late.enqueue(db, "t", "x");
    db.run("COMMIT");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM late_jobs"), 1);
}

// ------------------------------------------------------------------------------------------------ the connection

TEST_F(CallersTransaction, KilledBetweenStatements_ConnectionLostAndTheTransactionWithIt) {
    for (const std::string& payload : {std::string{"short"}, kLongPayload}) {
        Connection killed = database.connect();
        killed.run("START TRANSACTION");
        killed.run("INSERT INTO orders VALUES (2,'new')");
        queue.enqueue(killed, "t", "before");
        database.look().run(fmt::format("KILL {}", killed.id()));
        const auto error = thrown([&] { queue.enqueue(killed, "t", payload); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::connection_lost) << error->what();
        EXPECT_EQ(error->transaction(), TransactionState::lost);
        EXPECT_EQ(error->repeat(), Repeat::reconnect);
        EXPECT_TRUE(thrown([&] { queue.enqueue(killed, "t", payload); })) << "still dead";
        EXPECT_TRUE(eventually([&] { return orders() == 1 && jobs() == 0; }));
    }
}

TEST_F(CallersTransaction, C15_ClientThatReconnectsByItself_TheLostTransactionIsNotGoneOnWith) {
    MYSQL* client = mysql_init(nullptr);
    const std::unique_ptr<MYSQL, decltype(&mysql_close)> close{client, &mysql_close};
#ifdef MARIADB_BASE_VERSION
    const my_bool reconnect = 1;
#else
    const bool reconnect = true;
#endif
    mysql_options(client, MYSQL_OPT_RECONNECT, &reconnect);
    const ConnectOptions& to = database.options();
    ASSERT_NE(mysql_real_connect(client, to.host.c_str(), to.user.c_str(), to.password.c_str(), to.database.c_str(),
                                 to.port, to.socket.c_str(), 0),
              nullptr);
    ASSERT_EQ(mysql_query(client, "START TRANSACTION"), 0);
    queue.enqueue(client, "t", "before");
    database.look().run(fmt::format("KILL {}", mysql_thread_id(client)));
    const auto error = thrown([&] { queue.enqueue(client, "t", "after"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::connection_lost) << error->what();
    EXPECT_EQ(error->transaction(), TransactionState::lost);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(thrown([&] { queue.enqueue(client, "t", "goes on"); }));
    }
    EXPECT_TRUE(eventually([&] { return jobs() == 0; }));
    // What the application does next may reconnect; that is a new transaction, and works.
    if (mysql_query(client, "START TRANSACTION") == 0) {
        queue.enqueue(client, "t", "new");
        ASSERT_EQ(mysql_query(client, "COMMIT"), 0);
        EXPECT_EQ(jobs(), 1);
    }
}

TEST_F(CallersTransaction, KilledQuery_OnlyTheStatementIsGone) {
    db.run("SET SESSION innodb_lock_wait_timeout = 100");
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (2,'new')");
    hold_the_end_of("commitq_jobs");
    std::optional<Error> error;
    std::thread enqueue{[&] { error = thrown([&] { queue.enqueue(db, "t", "killed"); }); }};
    EXPECT_TRUE(eventually([&] { return waits_for_a_lock(database.look(), db.id()); }));
    database.look().run(fmt::format("KILL QUERY {}", db.id()));
    enqueue.join();
    other.run("ROLLBACK");
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::server) << error->what();
    EXPECT_EQ(error->server_errno(), 1317U);
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    queue.enqueue(db, "t", "repeated");
    db.run("COMMIT");
    EXPECT_EQ(jobs(), 1);
    EXPECT_EQ(orders(), 2);
}

TEST_F(CallersTransaction, ReadOnlyTransaction_IsSaidToBe) {
    db.run("START TRANSACTION READ ONLY");
    const auto error = thrown([&] { queue.enqueue(db, "t", "x"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::read_only) << error->what();
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    db.run("COMMIT");
}

// ------------------------------------------------------------------------------------------------ late commits

TEST_F(CallersTransaction, C17_SmallerIdCommitsAfterALargerOneWasConsumed_BothRun) {
    std::atomic<int> first_runs{0};
    std::atomic<int> second_runs{0};
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("first", [&](JobContext&) { return ++first_runs, Outcome::done(); });
    worker.on("second", [&](JobContext&) { return ++second_runs, Outcome::done(); });
    worker.start();

    db.run("START TRANSACTION");
    const JobId first = queue.enqueue(db, "first", "commits late");
    other.run("START TRANSACTION");
    const JobId hole = queue.enqueue(other, "first", "never commits");
    other.run("ROLLBACK");
    other.run("START TRANSACTION");
    const JobId second = queue.enqueue(other, "second", "commits early");
    other.run("COMMIT");
    ASSERT_LT(first, hole);
    ASSERT_LT(hole, second);
    EXPECT_TRUE(eventually([&] { return database.job(second, "state") == "completed"; }));
    EXPECT_EQ(first_runs, 0);
    db.run("COMMIT");
    EXPECT_TRUE(eventually([&] { return database.job(first, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(10s).clean);
    EXPECT_EQ(first_runs, 1);
    EXPECT_EQ(second_runs, 1);
    EXPECT_EQ(jobs(), 2);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(CallersTransaction, C17_LateCommitIntoAQueueThatIsNeverIdle_IsFoundBehindTheHint) {
    std::atomic<bool> enough{false};
    std::atomic<bool> late_ran{false};
    std::atomic<int> served{0};
    Worker worker{database.options(), {.queues = {"q"}, .concurrency = 2, .batch = 5, .prefetch = 5}};
    worker.on("again", [&](JobContext&) {
        ++served;
        return enough ? Outcome::done() : Outcome::retry("again", 0us);
    });
    worker.on("late", [&](JobContext&) {
        late_ran = true;
        return Outcome::done();
    });
    db.run("START TRANSACTION");
    queue.enqueue(db, "late", "");
    for (int i = 0; i < 20; ++i) {
        database.enqueue("q", "again", "", {.max_attempts = 10'000});
    }
    worker.start();
    EXPECT_TRUE(eventually([&] { return served > 200; }));
    EXPECT_FALSE(late_ran);
    db.run("COMMIT");
    EXPECT_TRUE(eventually([&] { return late_ran.load(); }));
    enough = true;
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 21; }));
    EXPECT_TRUE(worker.stop(10s).clean);
}

}  // namespace
}  // namespace commitq::test
