// Completing a job inside a transaction of the handler's: effect and completion together, or neither.
#include "support/child.h"
#include "support/recorder.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace commitq::test {
namespace {

class CompleteIn : public ::testing::Test {
protected:
    CompleteIn() {
        database.look().run(
            "CREATE TABLE effects (id INT AUTO_INCREMENT PRIMARY KEY, job BIGINT NOT NULL, note VARCHAR(20))");
    }

    WorkerOptions options(WorkerOptions more = {}) {
        more.queues = {"q"};
        more.observer = recorder;
        more.retry = RetryPolicy::fixed(0s);
        return more;
    }
    static std::string effect_of(const JobContext& job) {
        return fmt::format("INSERT INTO effects (job) VALUES ({})", job.id());
    }
    long effects() { return database.look().number("SELECT COUNT(*) FROM effects"); }
    /// Runs what is due with that handler until nothing is.
    void drain(Handler handler) {
        Worker worker{database.options(), options()};
        worker.on("t", std::move(handler));
        testing::drain(worker);
    }
    void expect_completed_once(JobId id, int attempt = 1) {
        EXPECT_EQ(database.job(id, "state"), "completed");
        EXPECT_EQ(database.job(id, "attempt"), std::to_string(attempt));
        EXPECT_EQ(recorder->count("completed", id), 1U);
        EXPECT_EQ(database.violations(), "");
    }

    Database database;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
};

// --------------------------------------------------------------------------------------------- the worker's transaction

TEST_F(CompleteIn, CommitCompletesTheJobAndKeepsTheEffect) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) {
        auto tx = job.begin();
        EXPECT_EQ(tx.execute(effect_of(job)), 1U);
        job.complete_in(tx);
        EXPECT_FALSE(tx.committed());
        tx.commit();
        EXPECT_TRUE(tx.committed());
        EXPECT_FALSE(tx.is_open());
        return Outcome::done();
    });
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(recorder->story(id), "claimed started completed");
}

TEST_F(CompleteIn, RollbackIsAFailedAttemptAndUndoesTheEffect) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        if (job.attempt() == 1) {
            tx.rollback();
        } else {
            tx.commit();
        }
        return Outcome::done();
    });
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 1);
    const auto retried = recorder->events("retried");
    ASSERT_EQ(retried.size(), 1U);
    EXPECT_NE(retried[0].reason, "");
    EXPECT_EQ(database.job(id, "last_error"), retried[0].reason);
}

TEST_F(CompleteIn, LeavingTheHandlerWithoutCommitIsAFailedAttempt) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        if (job.attempt() == 2) {
            tx.commit();
        }
        return Outcome::done();
    });
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CompleteIn, AnExceptionBeforeCommitUndoesAllAndIsTheReason) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) -> Outcome {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        if (job.attempt() == 1) {
            throw std::runtime_error{"changed my mind"};
        }
        tx.commit();
        return Outcome::done();
    });
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(database.job(id, "last_error"), "changed my mind");
}

TEST_F(CompleteIn, AnExceptionAfterCommitChangesNothing) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) -> Outcome {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        tx.commit();
        throw std::runtime_error{"too late"};
    });
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(database.job(id, "last_error IS NULL"), "1");
    EXPECT_EQ(recorder->count("retried"), 0U);
}

TEST_F(CompleteIn, AnyOutcomeAfterCommitChangesNothing) {
    for (const auto& outcome : {Outcome::retry("again"), Outcome::snooze(1h), Outcome::dead("no"), Outcome::cancel()}) {
        const JobId id = database.enqueue("q", "t");
        drain([&](JobContext& job) {
            auto tx = job.begin();
            job.complete_in(tx);
            tx.commit();
            return outcome;
        });
        expect_completed_once(id);
    }
}

TEST_F(CompleteIn, AnOutcomeBesideARolledBackTransactionCounts) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        auto tx = job.begin();
        job.complete_in(tx);
        tx.rollback();
        return Outcome::dead("not wanted");
    });
    EXPECT_EQ(database.job(id, "state"), "dead");
    EXPECT_EQ(database.job(id, "last_error"), "not wanted");
    EXPECT_EQ(database.violations(), "");
}

TEST_F(CompleteIn, AfterARollbackASecondTransactionCanCompleteIt) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        tx.rollback();
        tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CompleteIn, AMovedTransactionIsTheSameOne) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        Transaction moved = std::move(tx);
        moved.commit();
        return Outcome::done();
    });
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CompleteIn, CompletingTwiceIsRefusedAndTheFirstStands) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        tx.commit();
        auto second = job.begin();
        second.execute(effect_of(job));
        job.complete_in(second);
        second.commit();
        return Outcome::done();
    });
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CompleteIn, UsingAnEndedTransactionIsRefused) {
    const JobId id = database.enqueue("q", "t");
    drain([](JobContext& job) {
        auto tx = job.begin();
        tx.rollback();
        EXPECT_EQ(code_of([&] { tx.execute("DO 1"); }), Errc::wrong_state);
        EXPECT_EQ(code_of([&] { (void)tx.query("SELECT 1"); }), Errc::wrong_state);
        EXPECT_EQ(code_of([&] { tx.commit(); }), Errc::wrong_state);
        EXPECT_TRUE(code_of([&] { job.complete_in(tx); }).has_value());
        return Outcome::done();
    });
    expect_completed_once(id);
}

TEST_F(CompleteIn, KeptConnectionsThatDiedAreReplaced) {
    constexpr int kHandlers = 4;
    std::atomic<int> begun{0};
    Gate all_begun;
    Worker worker{database.options(), options({.concurrency = kHandlers})};
    worker.on("t", [&](JobContext& job) {
        auto tx = job.begin();  // four at once: four connections are kept afterwards
        if (++begun == kHandlers) {
            all_begun.open();
        }
        all_begun.wait();
        tx.execute(effect_of(job));
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    database.enqueue_many("q", "t", kHandlers);
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == kHandlers; }));
    EXPECT_GE(kill_connections(database), kHandlers);
    database.enqueue_many("q", "t", kHandlers);
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 2 * kHandlers; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(recorder->count("retried"), 0U) << "no attempt failed for it";
    EXPECT_EQ(effects(), 2 * kHandlers);
    EXPECT_EQ(database.violations(), "");
}

// --------------------------------------------------------------------------------------------- the caller's connection

TEST_F(CompleteIn, TheCallersConnectionServesAsWell) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        Connection db = database.connect();
        db.run("START TRANSACTION");
        db.run(effect_of(job));
        job.complete_in(db);
        db.run("COMMIT");
        return Outcome::done();
    });
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CompleteIn, TheCallersConnectionMayHaveAnotherCurrentDatabase) {
    Database other{false};
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        Connection db = other.connect();
        db.run("START TRANSACTION");
        job.complete_in(db);
        db.run("COMMIT");
        return Outcome::done();
    });
    expect_completed_once(id);
}

TEST_F(CompleteIn, TheCallersRollbackIsAFailedAttempt) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        Connection db = database.connect();
        db.run("START TRANSACTION");
        db.run(effect_of(job));
        job.complete_in(db);
        db.run(job.attempt() == 1 ? "ROLLBACK" : "COMMIT");
        return Outcome::done();
    });
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CompleteIn, AnExceptionAfterTheCallersCommitChangesNothing) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) -> Outcome {
        Connection db = database.connect();
        db.run("START TRANSACTION");
        db.run(effect_of(job));
        job.complete_in(db);
        db.run("COMMIT");
        throw std::runtime_error{"too late"};
    });
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CompleteIn, WithoutATransactionItIsRefusedAndNothingIsChanged) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        Connection db = database.connect();
        EXPECT_EQ(code_of([&] { job.complete_in(db); }), Errc::not_in_transaction);
        EXPECT_EQ(database.job(id, "state"), "running");
        return Outcome::done();
    });
    expect_completed_once(id);
}

TEST_F(CompleteIn, ANullConnectionIsRefused) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        MYSQL* null = nullptr;
        EXPECT_EQ(code_of([&] { job.complete_in(null); }), Errc::invalid_argument);
        return Outcome::done();
    });
    expect_completed_once(id);
}

TEST_F(CompleteIn, ABrokenCallersConnectionIsAFailedAttempt) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        Connection db = database.connect();
        db.run("START TRANSACTION");
        db.run(effect_of(job));
        if (job.attempt() == 1) {
            database.look().run(fmt::format("KILL {}", db.id()));
        }
        job.complete_in(db);  // throws connection_lost in the first attempt
        db.run("COMMIT");
        return Outcome::done();
    });
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 1);
}

// ---------------------------------------------------------------------------------------------------------- lost leases

TEST_F(CompleteIn, ALostLeaseIsThrownAndNothingOfItIsKept) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        auto tx = job.begin();
        tx.execute(effect_of(job));
        if (job.attempt() == 1) {
            expire_leases(database);
            EXPECT_EQ((Reaper{database.options(), {}}.reap_once().returned), 1U);
            EXPECT_THROW(job.complete_in(tx), LeaseLost);
            job.complete_in(tx);  // and again: leaves the handler, which rolls back
        }
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(recorder->count("lease_lost"), 1U);
    EXPECT_EQ(recorder->count("retried"), 0U) << "the reaper decides, not the zombie";
}

TEST_F(CompleteIn, ALeaseLostOnTheCallersConnectionLeavesItsTransactionOpen) {
    const JobId id = database.enqueue("q", "t");
    drain([&](JobContext& job) {
        Connection db = database.connect();
        db.run("START TRANSACTION");
        db.run("INSERT INTO effects (job,note) VALUES (0,'before')");
        if (job.attempt() == 1) {
            expire_leases(database);
            Reaper{database.options(), {}}.reap_once();
            EXPECT_THROW(job.complete_in(db), LeaseLost);
            db.run("ROLLBACK");  // the caller's to decide
            return Outcome::done();
        }
        job.complete_in(db);
        db.run("COMMIT");
        return Outcome::done();
    });
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 1);
}

// ------------------------------------------------------------------------------------ while the transaction is still open

/// Waits until the lease of a job has been renewed so many times.
bool renewed_times(Database& database, JobId id, int times) {
    std::string last = database.job(id, "lease_until");
    return eventually([&] {
        const std::string now = database.job(id, "lease_until");
        times -= now != last ? 1 : 0;
        last = now;
        return times <= 0;
    });
}

TEST_F(CompleteIn, AnOpenTransactionDoesNotKeepOtherLeasesFromBeingRenewed) {
    Gate holding;
    Gate go_on;
    Worker worker{database.options(), options({.concurrency = 2, .lease = 6s, .heartbeat = 100ms})};
    worker.on("holds", [&](JobContext& job) {
        auto tx = job.begin();
        job.complete_in(tx);
        holding.open();
        go_on.wait();
        tx.commit();
        return Outcome::done();
    });
    worker.on("long", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    const JobId holds = database.enqueue("q", "holds");
    const JobId other = database.enqueue("q", "long");
    worker.start();
    ASSERT_TRUE(holding.wait());
    ASSERT_TRUE(eventually([&] { return database.job(other, "state") == "running"; }));
    EXPECT_TRUE(renewed_times(database, other, 5));
    go_on.open();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 2; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(recorder->error_text(), "");
    EXPECT_EQ(recorder->count("lease_lost"), 0U);
    expect_completed_once(holds);
    expect_completed_once(other);
}

// The handler has committed and goes on for longer than a few heartbeats: the job isn't running any more, but it isn't
// lost either.
TEST_F(CompleteIn, AHandlerThatRunsOnAfterItsCommitHasNotLostItsLease) {
    Gate committed;
    Gate go_on;
    StopReason reason = StopReason::none;
    Worker worker{database.options(), options({.lease = 2s, .heartbeat = 50ms})};
    worker.on("t", [&](JobContext& job) {
        auto tx = job.begin();
        job.complete_in(tx);
        tx.commit();
        committed.open();
        go_on.wait();
        reason = job.stop_reason();
        return Outcome::done();
    });
    worker.on("long", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    const JobId id = database.enqueue("q", "t");
    const JobId other = database.enqueue("q", "long");
    worker.start();
    ASSERT_TRUE(committed.wait());
    ASSERT_TRUE(eventually([&] { return database.job(other, "state") == "running"; }));
    // Until a lease and more has passed since the commit.
    EXPECT_TRUE(
        eventually([&] { return database.job(id, "finished_at < UTC_TIMESTAMP(6) - INTERVAL 3 SECOND") == "1"; }));
    go_on.open();
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(reason, StopReason::none);
    EXPECT_EQ(recorder->story(id), "claimed started completed");
    expect_completed_once(id);
}

class LeftOpen : public CompleteIn {
protected:
    /// A job whose handler returned `done` but left the caller's transaction open, with the job's row locked, and another
    /// job whose result got written meanwhile.
    void leave_open() {
        worker =
            std::make_unique<Worker>(database.options(), options({.concurrency = 2, .lease = 60s, .heartbeat = 100ms}));
        worker->on("t", [this](JobContext& job) {
            if (job.attempt() == 1) {
                open->run("START TRANSACTION");
                open->run(effect_of(job));
                job.complete_in(*open);
            }
            return Outcome::done();
        });
        worker->on("other", [](JobContext&) { return Outcome::done(); });
        worker->start();
        id = database.enqueue("q", "t");
        EXPECT_TRUE(eventually([&] { return recorder->count("started", id) == 1; }));
        for (int i = 0; i < 5; ++i) {
            const JobId other = database.enqueue("q", "other");
            EXPECT_TRUE(eventually([&] { return recorder->count("completed", other) == 1; }));
        }
        EXPECT_EQ(database.job(id, "state"), "running");
        EXPECT_EQ(recorder->story(id), "claimed started");
    }

    std::unique_ptr<Connection> open = std::make_unique<Connection>(database.options());
    std::unique_ptr<Worker> worker;
    JobId id = 0;
};

TEST_F(LeftOpen, OtherResultsAreWrittenAndALaterCommitCompletesTheJob) {
    leave_open();
    open->run("COMMIT");
    EXPECT_TRUE(eventually([&] { return recorder->count("completed", id) == 1; }));
    EXPECT_TRUE(worker->stop(60s).clean);
    EXPECT_EQ(recorder->count("retried"), 0U);
    EXPECT_EQ(recorder->error_text(), "") << "nobody waited for the row";
    expect_completed_once(id);
    EXPECT_EQ(effects(), 1);
}

TEST_F(LeftOpen, ALaterRollbackIsAFailedAttempt) {
    leave_open();
    open->run("ROLLBACK");
    EXPECT_TRUE(eventually([&] { return recorder->count("completed", id) == 1; }));
    EXPECT_TRUE(worker->stop(60s).clean);
    EXPECT_EQ(recorder->count("retried", id), 1U);
    expect_completed_once(id, 2);
    EXPECT_EQ(effects(), 0);
}

TEST_F(LeftOpen, StopDoesNotWaitForItForEver) {
    leave_open();
    const StopReport report = worker->stop(1s);
    EXPECT_EQ(report.abandoned, 1U);
    open->run("COMMIT");
    EXPECT_EQ(database.job(id, "state"), "completed");
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------------------- exactly once

/// Works, and dies by SIGKILL in its n-th job, at the place that n says.
int dies_now_and_then(const ChildArguments& arguments) {
    const auto options = ConnectOptions::from_url(arguments.at(0));
    const int deadly = std::stoi(arguments.at(1));
    std::atomic<int> jobs{0};
    Worker worker{options, {.queues = {"q"}, .concurrency = 4, .batch = 10, .reaper = false}};
    worker.on("t", [&](JobContext& job) {
        const bool last = ++jobs == deadly;
        const auto die_at = [&](int place) {
            if (last && deadly % 4 == place) {
                kill(getpid(), SIGKILL);
            }
        };
        auto tx = job.begin();
        die_at(0);
        tx.execute(fmt::format("INSERT INTO effects (job) VALUES ({})", job.id()));
        die_at(1);
        job.complete_in(tx);
        die_at(2);
        tx.commit();
        die_at(3);
        return Outcome::done();
    });
    worker.start();
    std::this_thread::sleep_for(1h);
    return 0;
}
const ChildRole kDiesNowAndThen{"dies_now_and_then", dies_now_and_then};

TEST_F(CompleteIn, EffectsAreExactlyOnceAcrossCrashes) {
    database.enqueue_many("q", "t", 150);
    for (int deadly = 5; deadly < 17; ++deadly) {
        Child child{"dies_now_and_then", {url_of(database.options()), std::to_string(deadly)}};
        EXPECT_EQ(child.wait(), Ended::by(SIGKILL));
        EXPECT_TRUE(eventually([&] { return connections(database).empty(); })) << "the server has rolled back";
        expire_leases(database);
        Reaper{database.options(), {}}.reap_once();
        EXPECT_EQ(database.violations(), "");
    }
    Child last{"dies_now_and_then", {url_of(database.options()), "100000"}};
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 150; }));
    EXPECT_EQ(effects(), 150);
    EXPECT_EQ(database.look().number("SELECT COUNT(DISTINCT job) FROM effects"), 150);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
