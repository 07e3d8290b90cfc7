// Returning jobs whose lease has run out.
#include "support/private_server.h"
#include "support/recorder.h"

#include <commitq/testing.h>
#include <core/random.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <store/reap.h>
#include <store/sql.h>

#include <atomic>
#include <thread>

namespace commitq::test {
namespace {

/// Makes jobs look as if a worker that died had claimed them; their lease is over.
void orphan(Database& database, std::string_view where, int attempt = 1, int max_attempts = 5) {
    database.look().run(fmt::format(
        "UPDATE commitq_jobs SET state='running',owner={},attempt={},max_attempts={},started_at=UTC_TIMESTAMP(6),"
        "lease_until=UTC_TIMESTAMP(6) WHERE {}",
        store::token_literal(core::make_token()), attempt, max_attempts, where));
}

class ReaperReap : public ::testing::Test {
protected:
    ReaperReap() { serve("q"); }
    /// As a worker does that serves the queue: reapers look into no others.
    void serve(std::string_view queue) {
        database.look().run(
            fmt::format("INSERT IGNORE INTO commitq_queues (queue,created_at) VALUES ('{}',NOW())", queue));
    }
    ReapReport reap(ReaperOptions options = {}) {
        const ReapReport report = Reaper{database.options(), std::move(options)}.reap_once();
        EXPECT_EQ(database.violations(), "");
        return report;
    }

    Database database;
};

TEST_F(ReaperReap, AnExpiredJobIsPendingAgainAndDueAtOnce) {
    const JobId id = database.enqueue("q", "t");
    orphan(database, "TRUE");
    const std::string owner = database.job(id, "owner");
    EXPECT_EQ(reap().returned, 1U);
    EXPECT_EQ(database.job(id, "state"), "pending");
    EXPECT_EQ(database.job(id, "attempt"), "1") << "the attempt was used";
    EXPECT_EQ(database.job(id, "owner IS NULL AND lease_until IS NULL"), "1");
    EXPECT_EQ(database.job(id, "available_at<=UTC_TIMESTAMP(6)"), "1");
    EXPECT_EQ(database.job(id, "last_error"), "lease expired, held by " + owner);
    EXPECT_EQ(reap().returned, 0U);
}

TEST_F(ReaperReap, AJobWhoseAttemptsAreUsedUpIsDead) {
    const JobId id = database.enqueue("q", "t");
    orphan(database, "TRUE", 5, 5);
    const ReapReport report = reap();
    EXPECT_EQ(report.returned, 0U);
    EXPECT_EQ(report.dead, 1U);
    EXPECT_EQ(database.job(id, "state"), "dead");
    EXPECT_EQ(database.job(id, "attempt"), "5");
    EXPECT_EQ(database.job(id, "finished_at IS NULL"), "0");
}

TEST_F(ReaperReap, AJobWithALeaseAndOneThatDoesNotRunAreLeftAlone) {
    const JobId running = database.enqueue("q", "t");
    orphan(database, "TRUE");
    database.look().run("UPDATE commitq_jobs SET lease_until=UTC_TIMESTAMP(6)+INTERVAL 1 MINUTE");
    for (const char* state : {"pending", "completed", "dead", "cancelled", "blocked"}) {
        const JobId id = database.enqueue("q", "t");
        orphan(database, fmt::format("id={}", id));
        database.look().run(
            fmt::format("UPDATE commitq_jobs SET state='{}',lease_until='1970-01-01',finished_at="
                        "IF('{}' IN ('pending','blocked'),'1970-01-01',UTC_TIMESTAMP(6)) WHERE id={}",
                        state, state, id));
    }
    const ReapReport report = reap();
    EXPECT_EQ(report.returned + report.dead, 0U);
    EXPECT_EQ(database.job(running, "state"), "running");
    EXPECT_EQ(database.count("running"), 1);
}

TEST_F(ReaperReap, AllQueuesThatAreServedAndAllBatches) {
    for (int i = 0; i < 20; ++i) {
        const std::string queue = fmt::format("queue.{}", i);
        serve(queue);
        database.enqueue_many(queue, "t", 12);
    }
    orphan(database, "id%4<>0");
    orphan(database, "id%4=0", 3, 3);
    const ReapReport report = reap({.batch = 7});
    EXPECT_EQ(report.returned, 180U);
    EXPECT_EQ(report.dead, 60U);
    EXPECT_EQ(database.count("running"), 0);
}

TEST_F(ReaperReap, OneLockedJobDoesNotKeepTheOthersFromBeingReaped) {
    const auto ids = database.enqueue_many("q", "t", 10);
    orphan(database, "TRUE");
    Connection handler = database.connect();
    handler.run("START TRANSACTION");
    handler.run(fmt::format("SELECT * FROM commitq_jobs WHERE id={} FOR UPDATE", ids[0]));
    EXPECT_EQ(reap({.batch = 1}).returned, 9U);
    EXPECT_EQ(database.job(ids[0], "state"), "running");
    handler.run("ROLLBACK");
    EXPECT_EQ(reap().returned, 1U);
}

TEST_F(ReaperReap, SeveralAtOnceReapEachJobOnce) {
    constexpr int kJobs = 600;
    database.enqueue_many("q", "t", kJobs);
    orphan(database, "TRUE");
    std::atomic<std::size_t> returned{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            Reaper reaper{database.options(), {.batch = 20}};
            for (int pass = 0; pass < 5; ++pass) {
                returned += reaper.reap_once().returned;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(returned, static_cast<std::size_t>(kJobs));
    EXPECT_EQ(database.count("pending"), kJobs);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(ReaperReap, OfManyReapersOneWorksInEachInterval) {
    mysql::Session one{database.options(), mysql::Purpose::library};
    mysql::Session other{database.options(), mysql::Purpose::library};
    const store::Tables tables{"commitq_"};
    EXPECT_TRUE(store::take_duty(one, tables, "reap", 1h));
    EXPECT_FALSE(store::take_duty(other, tables, "reap", 1h));
    EXPECT_TRUE(store::take_duty(other, tables, "reap", 0s));
    // While somebody is about to take it, nobody waits.
    one.execute_all("START TRANSACTION;" + store::take_duty_sql(tables, "reap", 0s), "test");
    EXPECT_FALSE(store::take_duty(other, tables, "reap", 0s));
    one.execute("ROLLBACK", "test");
    EXPECT_TRUE(store::take_duty(other, tables, "reap", 0s));
}

TEST_F(ReaperReap, RunsByItselfAndTellsItsObserver) {
    const auto recorder = std::make_shared<Recorder>();
    {
        Reaper reaper{database.options(), {.interval = 100ms, .grace = 0ms, .observer = recorder}};
        reaper.start();
        EXPECT_EQ(code_of([&] { reaper.start(); }), Errc::wrong_state);
        EXPECT_EQ(code_of([&] { reaper.reap_once(); }), Errc::wrong_state);
        for (std::size_t round = 1; round <= 3; ++round) {
            database.enqueue("q", "t");
            orphan(database, "state='pending' AND attempt=0");
            EXPECT_TRUE(eventually([&] { return recorder->returned() == round; }));
            EXPECT_EQ(database.violations(), "");
        }
        reaper.stop();
        reaper.stop();
        EXPECT_EQ(code_of([&] { reaper.start(); }), Errc::wrong_state);
    }
    database.enqueue("q", "t");
    orphan(database, "state='pending' AND attempt=0");
    EXPECT_TRUE(eventually([&] { return connections(database).empty(); }));
    EXPECT_EQ(database.count("running"), 1);
    EXPECT_EQ(recorder->error_text(), "");
}

TEST_F(ReaperReap, BadOptionsAreRefused) {
    const auto refused = [&](ReaperOptions options) {
        return code_of([&] { Reaper{database.options(), std::move(options)}; }) == Errc::invalid_argument;
    };
    EXPECT_FALSE(refused({}));
    EXPECT_TRUE(refused({.prefix = "a b"}));
    EXPECT_TRUE(refused({.interval = 99ms}));
    EXPECT_TRUE(refused({.grace = -1ms}));
    EXPECT_TRUE(refused({.batch = 0}));
    ConnectOptions nowhere = database.options();
    nowhere.database.clear();
    EXPECT_EQ(code_of([&] { Reaper{nowhere, {}}; }), Errc::invalid_argument);
    Database empty{false};
    EXPECT_EQ(code_of([&] { Reaper{empty.options(), {}}.start(); }), Errc::schema_missing);
    EXPECT_EQ(code_of([&] { Reaper{empty.options(), {}}.reap_once(); }), Errc::schema_missing);
}

TEST_F(ReaperReap, ReapOnceGoesOnAfterItsConnectionWasKilled) {
    Reaper reaper{database.options(), {}};
    reaper.reap_once();
    EXPECT_EQ(kill_connections(database), 1);
    database.enqueue("q", "t");
    orphan(database, "TRUE");
    EXPECT_EQ(code_of([&] { reaper.reap_once(); }), Errc::connection_lost);
    EXPECT_EQ(reaper.reap_once().returned, 1U);
    EXPECT_EQ(database.violations(), "");
}

// --------------------------------------------------------------------------------------------------------------- grace

TEST_F(ReaperReap, AfterItsConnectionWasAwayLiveWorkersRenewFirst) {
    constexpr auto kGrace = 2s;
    const auto recorder = std::make_shared<Recorder>();
    Reaper reaper{database.options(), {.interval = 100ms, .grace = kGrace, .observer = recorder}};
    reaper.start();
    database.enqueue("q", "t");
    orphan(database, "TRUE");
    ASSERT_TRUE(eventually([&] { return recorder->returned() == 1; }));
    for (std::size_t round = 2; round <= 3; ++round) {
        const auto killed = std::chrono::steady_clock::now();
        ASSERT_EQ(kill_connections(database), 1);
        orphan(database, "TRUE");
        ASSERT_TRUE(eventually([&] { return recorder->returned() == round; }));
        EXPECT_GE(std::chrono::steady_clock::now() - killed, kGrace);
    }
    EXPECT_EQ(database.violations(), "");
}

TEST(ReaperGrace, AfterTheServerCameUpLiveWorkersRenewFirst) {
    const PrivateServer server;
    Database database{server.options()};
    database.look().run("INSERT INTO commitq_queues (queue,created_at) VALUES ('q',NOW())");
    database.enqueue("q", "t");
    orphan(database, "TRUE");
    const auto recorder = std::make_shared<Recorder>();
    const auto uptime = [&] {
        return std::stol(database.look().rows("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1].value_or("0"));
    };
    const auto grace = std::chrono::seconds{uptime() + 3};
    Reaper reaper{database.options(), {.interval = 100ms, .grace = grace, .observer = recorder}};
    reaper.start();
    ASSERT_TRUE(eventually([&] { return recorder->returned() == 1; }));
    EXPECT_GE(uptime(), grace.count());
}

// The whole machine stood still for longer than a lease, and no connection broke. Reaper and heartbeat go on together: the
// reaper has to let the heartbeat go first.
TEST(ReaperGrace, AfterTheServerStoodStillLiveWorkersRenewFirst) {
    const PrivateServer server;
    Database database{server.options()};
    const JobId id = database.enqueue("q", "t");
    const auto recorder = std::make_shared<Recorder>();
    std::atomic<int> runs{0};
    Gate started;
    Gate go_on;
    Worker worker{database.options(), {.queues = {"q"}, .lease = 1s, .observer = recorder}};
    worker.on("t", [&](JobContext&) {
        ++runs;
        started.open();
        go_on.wait();
        return Outcome::done();
    });
    worker.start();
    ASSERT_TRUE(started.wait());
    const std::string before = database.job(id, "lease_until");
    server.freeze();
    std::this_thread::sleep_for(2500ms);  // the lease runs out; nobody can be asked whether it has
    server.thaw();
    EXPECT_TRUE(eventually([&] { return database.job(id, "lease_until > UTC_TIMESTAMP(6)") == "1"; }));
    EXPECT_NE(database.job(id, "lease_until"), before);
    go_on.open();
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(database.job(id, "attempt"), "1");
    EXPECT_EQ(recorder->returned(), 0U);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
