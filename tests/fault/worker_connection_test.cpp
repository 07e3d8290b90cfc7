// Connections that die under a worker, and errors of the server in each of its loops.
#include "support/packet_proxy.h"
#include "support/private_server.h"
#include "support/recorder.h"
#include "support/server_facts.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace commitq::test {
namespace {

class WorkerConnection : public ::testing::Test {
protected:
    WorkerOptions options(WorkerOptions more = {}) {
        more.queues = {"q"};
        more.observer = recorder;
        return more;
    }
    Handler counting() {
        return [this](JobContext& job) {
            runs.add(job.id());
            return Outcome::done();
        };
    }
    bool all_completed(long count) {
        return eventually([&] { return database.count("completed") == count; });
    }

    Database database;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
    Runs runs;
};

// --------------------------------------------------------------------------------------------------------------- start

TEST_F(WorkerConnection, AStartThatFailsAtTheReapersConnection_HasClaimedNothingAndLeavesNothing) {
    constexpr int kOfTheReaper = 2;
    std::atomic<int> checks{0};
    PacketProxy proxy{database.tcp_options(), [&](const std::string& packet) {
                          if (packet.find("commitq_schema") == std::string::npos || ++checks != kOfTheReaper) {
                              return Passage::pass;
                          }
                          eventually([&] { return recorder->count("claimed") > 0; }, 1s);  // not if all is well
                          return Passage::lose;
                      }};
    const JobId id = database.enqueue("q", "t");
    Worker worker{proxy.options(), options()};
    worker.on("t", counting());
    EXPECT_EQ(code_of([&] { worker.start(); }), Errc::connection_lost);
    EXPECT_FALSE(worker.health().started);
    EXPECT_EQ(runs.jobs(), 0U);
    EXPECT_EQ(database.job(id, "attempt"), "0");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_workers"), 0);

    worker.start();
    EXPECT_TRUE(all_completed(1));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------------------ auto-reconnect

TEST_F(WorkerConnection, C15_AConnectionLostInATransaction_IsNotReplacedUnderneath) {
    for (const auto purpose : {mysql::Purpose::library, mysql::Purpose::handler}) {
        mysql::Session session{database.options(), purpose};
        session.execute("START TRANSACTION", "test");
        database.look().run(fmt::format("KILL {}", mysql_thread_id(session.client())));
        EXPECT_EQ(code_of([&] { session.execute("DO 1", "test"); }), Errc::connection_lost);
        EXPECT_FALSE(session.usable());
        EXPECT_EQ(code_of([&] { session.execute("DO 1", "test"); }), Errc::connection_lost) << "and stays lost";
    }
}

TEST_F(WorkerConnection, C15_AHandlersTransactionThatIsLost_IsSaidToBe) {
    database.look().run("CREATE TABLE effects (job BIGINT)");
    const JobId id = database.enqueue("q", "t");
    Worker worker{database.options(), options({.retry = RetryPolicy::fixed(0s)})};
    worker.on("t", [&](JobContext& job) {
        auto tx = job.begin();
        tx.execute("INSERT INTO effects VALUES (1)");
        if (job.attempt() == 1) {
            const auto connection = tx.query("SELECT CONNECTION_ID()").at(0).at(0).value_or("");
            database.look().run("KILL " + connection);
            try {
                tx.execute("INSERT INTO effects VALUES (2)");
                ADD_FAILURE() << "it went on";
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), Errc::connection_lost);
                EXPECT_EQ(error.transaction(), TransactionState::lost);
                EXPECT_EQ(error.repeat(), Repeat::reconnect);
            }
            EXPECT_TRUE(code_of([&] { job.complete_in(tx); }).has_value());
            EXPECT_TRUE(code_of([&] { tx.commit(); }).has_value());
            EXPECT_FALSE(tx.committed());
            return Outcome::retry("lost");
        }
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    EXPECT_EQ(testing::drain(worker), 2U);
    EXPECT_EQ(database.job(id, "state"), "completed");
    EXPECT_EQ(database.look().value("SELECT GROUP_CONCAT(job) FROM effects"), "1");
    EXPECT_EQ(database.violations(), "");
}

// ----------------------------------------------------------------------------------------------- killed at any time

TEST_F(WorkerConnection, C19_ACompletionThatFindsItsConnectionGone_ReconnectsAndTheHandlerRanOnce) {
    const JobId id = database.enqueue("q", "t");
    Worker worker{database.options(), options()};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        EXPECT_GE(kill_connections(database), 3) << "claimer, completer and heartbeat";
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(all_completed(1));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.of(id), 1);
    EXPECT_EQ(database.job(id, "attempt"), "1");
    EXPECT_EQ(recorder->story(id), "claimed started completed");
    EXPECT_FALSE(recorder->errors("complete").empty());
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerConnection, C19_AServerThatClosesIdleConnections_CostsNoRunAndNoJob) {
    const PrivateServer server{{"--wait-timeout=1"}};
    Database quick_to_close{server.options()};
    quick_to_close.look().run("SET SESSION wait_timeout=3600");
    const JobId id = quick_to_close.enqueue("q", "t");
    Worker worker{quick_to_close.options(), options()};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        // Until the claimer's connection alone is left, which is in use all the time.
        EXPECT_TRUE(eventually([&] { return connections(quick_to_close).size() <= 1; }));
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return quick_to_close.job(id, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.of(id), 1);
    EXPECT_EQ(quick_to_close.job(id, "attempt"), "1");
    EXPECT_EQ(quick_to_close.violations(), "");
}

TEST_F(WorkerConnection, C27_AllConnectionsKilledAgainAndAgain_NoJobIsLost) {
    constexpr int kJobs = 1'000;
    database.enqueue_many("q", "t", kJobs);
    Worker worker{database.options(),
                  options({.concurrency = 4, .batch = 20, .lease = 2s, .retry = RetryPolicy::fixed(0s)})};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        auto tx = job.begin();
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    worker.start();
    int rounds = 0;
    EXPECT_TRUE(eventually([&] {
        if (rounds < 30) {
            ++rounds;
            kill_connections(database);
            std::this_thread::sleep_for(30ms);
        }
        return database.count("completed") == kJobs;
    }));
    EXPECT_GE(rounds, 1);
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.jobs(), static_cast<std::size_t>(kJobs));
    EXPECT_EQ(recorder->count("completed"), static_cast<std::size_t>(kJobs));
    EXPECT_EQ(database.count("completed"), kJobs);
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------- an error in each loop

struct LoopError {
    std::string name;
    std::string loop;
    std::string from;
    std::string to;
};
std::ostream& operator<<(std::ostream& out, const LoopError& error) { return out << error.name; }

class EveryLoop : public WorkerConnection, public ::testing::WithParamInterface<LoopError> {
protected:
    /// A job that a worker which died had claimed, its lease over. Nobody sees it before.
    JobId orphan() {
        Connection db = database.connect();
        db.run("START TRANSACTION");
        const JobId id = Queue{"q"}.enqueue(db, "t", "{}");
        db.run(
            fmt::format("UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=1000,"
                        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE id={}",
                        id));
        db.run("COMMIT");
        return id;
    }
};

// Errors as they come: deadlock, lock wait, killed query, read-only after a failover (three kinds), killed connection,
// shutdown, a storage engine out of order.
constexpr std::array kErrors = {1213U, 1205U, 1317U, 1290U, 1792U, 1836U, 1927U, 1053U, 1030U};

TEST_P(EveryLoop, C27_OneDatabaseError_EndsNoLoop) {
    const std::string loop = GetParam().loop;
    const std::string to = GetParam().to;
    Faults faults{database};
    Worker worker{database.options(),
                  options({.lease = 1s, .heartbeat = 100ms, .max_attempts = 1'000, .retry = RetryPolicy::fixed(0s)})};
    std::atomic<bool> go_on{false};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        while (loop == "heartbeat" && !go_on && !job.stop_token().stop_requested()) {
            std::this_thread::sleep_for(5ms);
        }
        return to == "pending" && loop == "complete" && job.attempt() == 1 ? Outcome::retry("again", 0s)
                                                                           : Outcome::done();
    });
    worker.start();
    long jobs = 0;
    for (const unsigned number : kErrors) {
        go_on = false;
        faults.arm(GetParam().from, to, number);
        const JobId id = loop == "reap" ? orphan() : database.enqueue("q", "t");
        EXPECT_TRUE(eventually([&] { return recorder->errors_with(loop, number) >= 2; })) << loop << " " << number;
        if (loop == "claim") {
            EXPECT_EQ(database.job(id, "state"), "pending");
            EXPECT_EQ(database.job(id, "attempt"), "0");
            EXPECT_EQ(runs.of(id), 0);
        }
        EXPECT_EQ(database.violations(), "");
        faults.disarm();
        go_on = true;
        EXPECT_TRUE(all_completed(++jobs)) << loop << " " << number;
        EXPECT_EQ(database.violations(), "");
    }
    EXPECT_TRUE(worker.stop(60s).clean);
}

INSTANTIATE_TEST_SUITE_P(Loops, EveryLoop,
                         ::testing::Values(LoopError{"C7_claim", "claim", "pending", "running"},
                                           LoopError{"complete", "complete", "running", "completed"},
                                           LoopError{"retry", "complete", "running", "pending"},
                                           LoopError{"heartbeat", "heartbeat", "running", "running"},
                                           LoopError{"reap", "reap", "running", "pending"}),
                         [](const auto& error) { return error.param.name; });

// A real one: the server has rolled the claim back.
TEST_F(WorkerConnection, C7_ADeadlockedClaim_MarksNoJobFailedAndIsRetried) {
    Connection& db = database.look();
    db.run("CREATE TABLE blocker (id INT PRIMARY KEY, n INT)");
    db.run("INSERT INTO blocker VALUES (1,0)");
    db.run("CREATE TABLE heavy (n INT)");
    db.run(
        "CREATE TRIGGER claims_wait BEFORE UPDATE ON commitq_jobs FOR EACH ROW IF OLD.state='pending' THEN"
        " UPDATE blocker SET n=n+1 WHERE id=1; END IF");
    const auto ids = database.enqueue_many("q", "t", 20);
    Connection other = database.connect();
    other.run("START TRANSACTION");
    // So that the claim is what costs less to roll back.
    other.run("INSERT INTO heavy SELECT 1 FROM information_schema.columns LIMIT 1000");
    other.run("UPDATE blocker SET n=7 WHERE id=1");
    Worker worker{database.options(), options({.reaper = false})};
    worker.on("t", counting());
    worker.start();
    std::size_t next = 0;
    EXPECT_TRUE(eventually([&] {
        const auto workers = connections(database, {other.id()});
        if (next < ids.size() && std::any_of(workers.begin(), workers.end(), [&](const unsigned long id) {
                return waits_for_a_lock(db, id);
            })) {  // the claim has locked its jobs and waits for us: now we wait for it
            other.run(fmt::format("SELECT id FROM commitq_jobs WHERE id={} FOR UPDATE", ids[next++]));
        }
        return recorder->errors_with("claim", 1213) >= 1;
    }));
    EXPECT_TRUE(eventually([&] { return worker.health().consecutive_errors > 0; })) << "it is counted";
    EXPECT_EQ(database.count("pending"), 20);
    EXPECT_EQ(db.number("SELECT MAX(attempt) FROM commitq_jobs"), 0);
    EXPECT_EQ(db.number("SELECT COUNT(last_error) FROM commitq_jobs"), 0);
    EXPECT_EQ(runs.jobs(), 0U);
    EXPECT_EQ(database.violations(), "");
    other.run("ROLLBACK");
    EXPECT_TRUE(all_completed(20));
    EXPECT_TRUE(eventually([&] { return worker.health().consecutive_errors == 0; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(db.number("SELECT MAX(attempt) FROM commitq_jobs"), 1);
    EXPECT_EQ(runs.jobs(), 20U);
    EXPECT_TRUE(runs.repeated().empty());
    EXPECT_EQ(database.violations(), "");
}

// C4: the completion is written again, and not by running the handler again.
TEST_F(WorkerConnection, C4_ADeadlockedCompletion_IsRetriedWithoutItsHandler) {
    Faults faults{database};
    faults.arm("running", "completed", 1213);
    const auto ids = database.enqueue_many("q", "t", 50);
    Worker worker{database.options(), options()};
    worker.on("t", counting());
    worker.start();
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("complete", 1213) >= 3; }));
    EXPECT_EQ(database.count("completed"), 0);
    faults.disarm();
    EXPECT_TRUE(all_completed(50));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.jobs(), 50U);
    EXPECT_TRUE(runs.repeated().empty());
    EXPECT_EQ(database.look().number("SELECT MAX(attempt) FROM commitq_jobs"), 1);
    EXPECT_EQ(database.violations(), "");
}

// ---------------------------------------------------------------------------------------------------------- read-only

TEST(WorkerReadOnly, C27_AServerThatTurnsReadOnlyAndBack_LosesNoJobAndNoResult) {
    const PrivateServer server;
    Database database{server.options()};
    // Those who administer servers may write all the same: a plain user may not.
    Connection& admin = database.look();
    admin.run("CREATE USER plain@'%' IDENTIFIED BY 'plain-password'");
    admin.run(fmt::format("GRANT ALL ON {}.* TO plain@'%'", database.name()));
    ConnectOptions plain = database.options();
    plain.user = "plain";
    plain.password = "plain-password";
    const auto recorder = std::make_shared<Recorder>();
    Runs runs;
    Gate started;
    Gate go_on;
    Worker worker{plain, {.queues = {"q"}, .concurrency = 2, .heartbeat = 100ms, .observer = recorder}};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        started.open();
        go_on.wait();
        return Outcome::done();
    });
    worker.start();
    const JobId held = database.enqueue("q", "t");
    ASSERT_TRUE(started.wait());
    admin.run("SET GLOBAL read_only=1");
    const JobId later = database.enqueue("q", "t");  // by the admin
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("heartbeat", 1290) >= 2; }));
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("claim", 1290) >= 2; }));
    go_on.open();
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("complete", 1290) >= 2; }));
    EXPECT_EQ(database.job(held, "state"), "running");
    EXPECT_EQ(database.job(later, "attempt"), "0");
    EXPECT_EQ(database.violations(), "");
    admin.run("SET GLOBAL read_only=0");
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 2; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.of(held), 1);
    EXPECT_EQ(runs.of(later), 1);
    EXPECT_EQ(database.job(held, "attempt"), "1");
    for (const Error& error : recorder->errors()) {
        EXPECT_EQ(error.code(), Errc::read_only) << error.what();
    }
    EXPECT_EQ(database.violations(), "");
}

TEST(WorkerReadOnly, C39_AFailoverToAReadOnlyServer_DropsItsConnectionsAndDialsAnewWithEachTry) {
    const PrivateServer server;
    Database database{server.options()};
    Connection& admin = database.look();
    admin.run("CREATE USER plain@'%' IDENTIFIED BY 'plain-password'");
    admin.run(fmt::format("GRANT ALL ON {}.* TO plain@'%'", database.name()));
    Connection{[&] {  // the server then knows the password, also of connections without TLS
        ConnectOptions plain = database.options();
        plain.user = "plain";
        plain.password = "plain-password";
        return plain;
    }()};
    const PacketProxy proxy{database.tcp_options(), [](std::string&) { return Passage::pass; }};
    ConnectOptions plain = proxy.options();
    plain.user = "plain";
    plain.password = "plain-password";
    const auto recorder = std::make_shared<Recorder>();
    Runs runs;
    Gate started;
    Gate go_on;
    Worker worker{
        plain,
        {.queues = {"q"}, .concurrency = 1, .prefetch = 0, .lease = 10s, .heartbeat = 100ms, .observer = recorder}};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        started.open();
        go_on.wait();
        return Outcome::done();
    });
    worker.start();
    const JobId held = database.enqueue("q", "t");
    ASSERT_TRUE(started.wait());
    const JobId later = database.enqueue("q", "t");
    const std::size_t before = proxy.connections();
    const std::string setting = database.is_mariadb() ? "read_only" : "super_read_only";
    admin.run("SET GLOBAL " + setting + "=1");
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("heartbeat", 1290) >= 3; }));
    go_on.open();  // the completion and the next claim fail too
    EXPECT_TRUE(eventually(
        [&] { return recorder->errors_with("complete", 1290) >= 3 && recorder->errors_with("claim", 1290) >= 3; }));
    constexpr std::size_t kLoops = 4;  // each may be between its error and its next connection
    const std::size_t errors = recorder->errors().size();
    EXPECT_GE(proxy.connections() + kLoops, before + errors) << "none goes on with its connection";
    const std::size_t dialled = proxy.connections();
    EXPECT_LE(dialled, before + recorder->errors().size() + kLoops) << "and none dials without having waited";
    EXPECT_FALSE(worker.health().connected);
    EXPECT_EQ(database.job(held, "state"), "running");
    EXPECT_EQ(database.job(later, "state"), "pending");
    EXPECT_EQ(database.job(later, "attempt"), "0");
    for (const Error& error : recorder->errors()) {
        EXPECT_EQ(error.code(), Errc::read_only) << error.what();
    }
    admin.run("SET GLOBAL read_only=0");
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 2; }));
    EXPECT_TRUE(eventually([&] { return worker.health().connected; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.of(held), 1);
    EXPECT_EQ(runs.of(later), 1);
    EXPECT_EQ(database.job(later, "attempt"), "1");
    EXPECT_EQ(database.violations(), "");
}

// --------------------------------------------------------------------------------------------------- unknown outcomes

/// Something that happens to the next packet with a certain text.
class UnknownOutcome : public WorkerConnection {
protected:
    /// Through the proxy, with little patience for replies.
    ConnectOptions through_proxy() {
        ConnectOptions options = proxy.options();
        options.read_timeout = 1s;
        return options;
    }

    PacketTrap trap;
    PacketProxy proxy{database.tcp_options(), [this](std::string& packet) { return trap.watch(packet); }};
};

const std::string kClaim = "SET state='running',owner=";

TEST_F(UnknownOutcome, C10_AClaimWhoseCommitIsNeverConfirmed_StartsNothingAndItsLeaseRunsOut) {
    trap.set(kClaim, Passage::mute);
    const JobId id = database.enqueue("q", "t");
    Worker worker{through_proxy(), options({.lease = 2s})};
    worker.on("t", [&](JobContext& job) {
        EXPECT_EQ(job.attempt(), 2);
        return counting()(job);
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "running"; })) << "the server has committed it";
    EXPECT_TRUE(eventually([&] { return !recorder->errors("claim").empty(); }));
    EXPECT_TRUE(trap.has_snapped());
    EXPECT_EQ(database.violations(), "");
    EXPECT_TRUE(all_completed(1));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(recorder->story(id), "claimed started completed") << "of the first claim, nothing was told or started";
    EXPECT_EQ(recorder->returned(), 1U);
    EXPECT_EQ(database.job(id, "attempt"), "2");
    EXPECT_EQ(runs.of(id), 1);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(UnknownOutcome, C10_AClaimThatNeverReachesTheServer_UsesNoAttempt) {
    trap.set(kClaim, Passage::lose);
    const JobId id = database.enqueue("q", "t");
    Worker worker{through_proxy(), options()};
    worker.on("t", counting());
    worker.start();
    EXPECT_TRUE(all_completed(1));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_TRUE(trap.has_snapped());
    EXPECT_EQ(database.job(id, "attempt"), "1");
    EXPECT_EQ(recorder->story(id), "claimed started completed");
    EXPECT_EQ(database.violations(), "");
}

struct Ending {
    std::string name;
    std::string statement;
    Outcome outcome;
    std::string state;
    std::string attempt = "1";
};

TEST_F(UnknownOutcome, C14_AResultWhoseCommitIsInDoubt_IsReadBackAndToldOnce) {
    const std::vector<Ending> endings = {
        {"completed", "SET state='completed'", Outcome::done(), "completed"},
        {"retried", "SET state='pending',lease_until", Outcome::retry("again", 1h), "pending"},
        {"snoozed", "SET state='pending',lease_until", Outcome::snooze(1h), "pending", "0"},
        {"dead", "SET state='dead'", Outcome::dead("no"), "dead"},
        {"cancelled", "SET state='cancelled'", Outcome::cancel("no more"), "cancelled"},
    };
    Worker worker{through_proxy(), options({.reaper = false})};
    for (const Ending& ending : endings) {
        worker.on(ending.name, [&](JobContext& job) {
            runs.add(job.id());
            return ending.outcome;
        });
    }
    worker.start();
    for (const Passage passage : {Passage::mute, Passage::lose_answer, Passage::lose}) {
        for (const Ending& ending : endings) {
            trap.set(ending.statement, passage);
            const JobId id = database.enqueue("q", ending.name);
            EXPECT_TRUE(eventually([&] { return recorder->count(ending.name, id) == 1; })) << ending.name;
            EXPECT_TRUE(trap.has_snapped());
            EXPECT_EQ(database.job(id, "state"), ending.state);
            EXPECT_EQ(database.job(id, "attempt"), ending.attempt);
            EXPECT_EQ(recorder->story(id), "claimed started " + ending.name);
            EXPECT_EQ(runs.of(id), 1);
            EXPECT_EQ(database.violations(), "");
        }
    }
    EXPECT_TRUE(worker.stop(60s).clean);
}

TEST_F(UnknownOutcome, AReleaseWhoseReplyIsLost_UsesNoAttempt) {
    for (const Passage passage : {Passage::mute, Passage::lose_answer, Passage::lose}) {
        Gate started;
        Gate go_on;
        Worker worker{through_proxy(), options({.concurrency = 1, .reaper = false})};
        worker.on("quick", counting());
        worker.on("slow", [&](JobContext&) {
            started.open();
            go_on.wait();
            return Outcome::done();
        });
        worker.start();
        const JobId quick = database.enqueue("q", "quick");
        ASSERT_TRUE(eventually([&] { return recorder->count("completed", quick) == 1; }));
        database.enqueue("q", "slow");
        ASSERT_TRUE(started.wait());
        const JobId waiting = database.enqueue("q", "slow");
        ASSERT_TRUE(eventually([&] { return recorder->count("claimed", waiting) == 1; }));
        trap.set("attempt=attempt-1", passage);
        std::thread opening{[&] {
            EXPECT_TRUE(eventually([&] { return recorder->count("released", waiting) == 1; }));
            go_on.open();
        }};
        EXPECT_TRUE(worker.stop(60s).clean);
        opening.join();
        EXPECT_TRUE(trap.has_snapped());
        EXPECT_EQ(database.job(waiting, "state"), "pending");
        EXPECT_EQ(database.job(waiting, "attempt"), "0");
        EXPECT_EQ(database.violations(), "");
        database.look().run(fmt::format("DELETE FROM commitq_jobs WHERE id={}", waiting));
    }
}

// The handler's own COMMIT: nobody sends it again; the worker reads back what became of it.
TEST_F(UnknownOutcome, C14_AHandlersCommitInDoubt_IsReadBack) {
    database.look().run("CREATE TABLE effects (job BIGINT, attempt INT)");
    for (const Passage passage : {Passage::mute, Passage::lose_answer, Passage::lose}) {
        Worker worker{through_proxy(), options({.retry = RetryPolicy::fixed(0s)})};
        worker.on("t", [&](JobContext& job) {
            runs.add(job.id());
            auto tx = job.begin();
            tx.execute(fmt::format("INSERT INTO effects VALUES ({},{})", job.id(), job.attempt()));
            job.complete_in(tx);
            if (job.attempt() == 1) {
                trap.set("COMMIT AND", passage);
                const auto code = code_of([&] { tx.commit(); });
                EXPECT_EQ(code, Errc::commit_in_doubt);
                throw std::runtime_error{"in doubt"};
            }
            tx.commit();
            return Outcome::done();
        });
        worker.start();
        const JobId id = database.enqueue("q", "t");
        EXPECT_TRUE(eventually([&] { return recorder->count("completed", id) == 1; }));
        EXPECT_TRUE(worker.stop(60s).clean);
        EXPECT_TRUE(trap.has_snapped());
        const bool arrived = passage != Passage::lose;
        EXPECT_EQ(database.job(id, "attempt"), arrived ? "1" : "2");
        EXPECT_EQ(runs.of(id), arrived ? 1 : 2);
        EXPECT_EQ(database.look().number(fmt::format("SELECT COUNT(*) FROM effects WHERE job={}", id)), 1);
        EXPECT_EQ(database.violations(), "");
    }
}

// C14: on a new connection a COMMIT sent again would "succeed" on nothing.
TEST_F(UnknownOutcome, C14_ACommitInDoubtOfATransactionThatEnqueues_IsNeverSentAgain) {
    std::atomic<int> commits{0};
    const PacketProxy counting{database.tcp_options(), [&](const std::string& packet) {
                                   commits += packet.find("COMMIT AND") == std::string::npos ? 0 : 1;
                                   return trap.watch(packet);
                               }};
    ConnectOptions impatient = counting.options();
    impatient.read_timeout = 1s;
    const Queue later{"later"};
    long jobs = 0;
    for (const Passage passage : {Passage::mute, Passage::lose_answer, Passage::lose}) {
        commits = 0;
        Worker worker{impatient, options({.retry = RetryPolicy::fixed(0s)})};
        worker.on("t", [&](JobContext& job) {
            runs.add(job.id());
            auto tx = job.begin();
            later.enqueue(tx, "t", "{}");
            job.complete_in(tx);
            if (job.attempt() > 1) {
                tx.commit();
                return Outcome::done();
            }
            trap.set("COMMIT AND", passage);
            try {
                tx.commit();
                ADD_FAILURE() << "it worked";
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), Errc::commit_in_doubt);
                EXPECT_EQ(error.repeat(), Repeat::never);
                EXPECT_EQ(error.transaction(), TransactionState::in_doubt);
                EXPECT_FALSE(tx.is_open());
                EXPECT_FALSE(tx.committed());
                EXPECT_EQ(code_of([&] { tx.commit(); }), Errc::wrong_state) << "and nothing is sent";
                throw;
            }
            return Outcome::done();
        });
        worker.start();
        const JobId id = database.enqueue("q", "t");
        EXPECT_TRUE(eventually([&] { return recorder->count("completed", id) == 1; }));
        EXPECT_TRUE(worker.stop(60s).clean);
        EXPECT_TRUE(trap.has_snapped());
        EXPECT_EQ(runs.of(id), passage == Passage::lose ? 2 : 1);
        EXPECT_EQ(commits, runs.of(id)) << "one for each transaction";
        EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_jobs WHERE queue='later'"), ++jobs);
        EXPECT_EQ(database.violations(), "");
    }
}

TEST_F(UnknownOutcome, AReapWhoseReplyIsLost_LosesNoJob) {
    database.look().run("INSERT INTO commitq_queues (queue,created_at) VALUES ('q',NOW())");
    for (const Passage passage : {Passage::mute, Passage::lose_answer, Passage::lose}) {
        const JobId id = database.enqueue("q", "t");
        database.look().run(
            fmt::format("UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=9,"
                        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE id={}",
                        id));
        trap.set("last_error=CONCAT('lease expired", passage);
        Reaper reaper{through_proxy(), {.interval = 100ms, .grace = 0ms, .observer = recorder}};
        reaper.start();
        EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "pending"; }));
        EXPECT_TRUE(trap.has_snapped());
        EXPECT_EQ(database.job(id, "attempt"), "1");
        EXPECT_EQ(database.violations(), "");
    }
    EXPECT_FALSE(recorder->errors("reap").empty());
}

// A worker froze, or was cut off, between two statements of a transaction. The server doesn't know; the locks must not stay
// for as long as it believes in that connection.
class CutOff : public UnknownOutcome, public ::testing::WithParamInterface<const char*> {};

TEST_P(CutOff, InTheMiddleOfATransaction_KeepsNoJobFromOthersForLong) {
    ConnectOptions patient = proxy.options();
    patient.read_timeout = 1h;
    Gate go_on;
    Worker cut_off{patient, options({.lease = 2s, .heartbeat = 300ms, .reaper = false})};
    cut_off.on("t", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    trap.set(GetParam(), Passage::cut_off);
    cut_off.start();
    const JobId id = database.enqueue("q", "t");
    ASSERT_TRUE(eventually([&] { return trap.has_snapped(); }));
    Worker heir{database.options(), {.queues = {"q"}, .lease = 2s}};
    heir.on("t", [](JobContext&) { return Outcome::done(); });
    heir.start();
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    go_on.open();
    EXPECT_TRUE(heir.stop(60s).clean);
    cut_off.stop(0s);
    EXPECT_EQ(database.violations(), "");
}

INSTANTIATE_TEST_SUITE_P(Statements, CutOff,
                         ::testing::Values("SET state='running',owner=", "FORCE INDEX (PRIMARY) SET lease_until="),
                         [](const auto& statement) {
                             return std::string{std::string_view{statement.param}.starts_with("SET") ? "Claim"
                                                                                                     : "Renewal"};
                         });

TEST_F(UnknownOutcome, AReaperCutOffInTheMiddle_KeepsNoJobFromOthersForLong) {
    ConnectOptions patient = proxy.options();
    patient.read_timeout = 1h;
    database.look().run("INSERT INTO commitq_queues (queue,created_at) VALUES ('q',NOW())");
    for (const char* statement : {"last_error=CONCAT('lease expired", "SET last_run_at="}) {
        const JobId id = database.enqueue("q", "t");
        database.look().run(
            fmt::format("UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=9,"
                        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE id={}",
                        id));
        trap.set(statement, Passage::cut_off);
        Reaper cut_off{patient, {.interval = 100ms, .grace = 0ms}};
        cut_off.start();
        ASSERT_TRUE(eventually([&] { return trap.has_snapped(); }));
        Reaper other{database.options(), {.interval = 100ms, .grace = 0ms}};
        other.start();
        EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "pending"; })) << statement;
        EXPECT_EQ(database.violations(), "");
    }
}

// ----------------------------------------------------------------------------------------------- odd server defaults

TEST(WorkerSession, C16_ServerDefaultsThatHideRows_AreNotTheWorkers) {
    const PrivateServer server{{"--autocommit=OFF", "--transaction-isolation=REPEATABLE-READ",
                                "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH",
                                "--default-time-zone=+05:00", "--innodb-rollback-on-timeout=ON",
                                "--completion-type=CHAIN"}};
    Database database{server.options()};
    database.look().run("SET SESSION autocommit=1, SESSION completion_type=NO_CHAIN");
    Connection app = database.connect();
    app.run("SET SESSION autocommit=1, SESSION completion_type=NO_CHAIN");
    app.run("CREATE TABLE effects (job BIGINT)");
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{database.options(), {.queues = {"q"}, .retry = RetryPolicy::fixed(0s), .observer = recorder}};
    worker.on("t", [](JobContext& job) {
        if (job.attempt() == 1) {
            return Outcome::retry("a reason with 'quotes', \"more\" and \\", 0s);
        }
        auto tx = job.begin();
        tx.execute(fmt::format("INSERT INTO effects VALUES ({})", job.id()));
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    worker.start();
    for (long jobs = 1; jobs <= 10; ++jobs) {
        const JobId id = Queue{"q"}.enqueue_autocommit(app, "t", "{}");
        EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }))
            << "each is seen, and its result";
        EXPECT_EQ(database.job(id, "TIMESTAMPDIFF(MINUTE,created_at,started_at)"), "0");
    }
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM effects"), 10);
    EXPECT_EQ(recorder->error_text(), "");
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
