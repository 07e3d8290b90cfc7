// Keeping a lease, and noticing when it is gone.
#include "support/child.h"
#include "support/recorder.h"

#include <core/random.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <store/lease.h>
#include <store/sql.h>

#include <atomic>
#include <future>
#include <thread>

namespace commitq::test {
namespace {

class LeaseRenewal : public ::testing::Test {
protected:
    WorkerOptions options(WorkerOptions more = {}) {
        more.queues = {"q"};
        more.observer = recorder;
        return more;
    }
    /// A handler that says that it runs, and runs until it is told.
    Handler waiting() {
        return [this](JobContext& job) {
            runs.add(job.id());
            if (job.attempt() == 1 && !started.is_open()) {
                token = job.stop_token();
            }
            started.open();
            go_on.wait();
            if (job.attempt() == 1) {
                reason = job.stop_reason();
            }
            return Outcome::done();
        };
    }
    /// Waits until the server has moved the job's lease on by that much since now.
    bool lease_moves_on(JobId id, std::chrono::seconds by) {
        const std::string first = database.job(id, "lease_until");
        return eventually([&] {
            return database.job(id, fmt::format("lease_until >= '{}' + INTERVAL {} SECOND", first, by.count())) == "1";
        });
    }
    /// The lease is over, and a reaper has returned the job.
    void take_away() {
        EXPECT_TRUE(eventually([&] {  // a renewal may come in between
            expire_leases(database);
            return Reaper{database.options(), {}}.reap_once().returned == 1;
        }));
    }

    Database database;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
    Runs runs;
    Gate started;
    Gate go_on;
    std::stop_token token{};
    StopReason reason = StopReason::none;
};

// ------------------------------------------------------------------------------------------------------------ renewing

TEST_F(LeaseRenewal, C22_AJobLongerThanItsLease_IsRenewedAutomatically) {
    const JobId id = database.enqueue("q", "t");
    Worker worker{database.options(), options({.lease = 3s})};
    worker.on("t", waiting());
    worker.start();
    ASSERT_TRUE(started.wait());
    EXPECT_TRUE(lease_moves_on(id, 4s)) << "its own reaper and others leave it alone all the while";
    EXPECT_EQ(database.violations(), "");
    go_on.open();
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(recorder->story(id), "claimed started completed");
    EXPECT_EQ(runs.of(id), 1);
    EXPECT_EQ(recorder->returned(), 0U);
    EXPECT_EQ(database.job(id, "attempt"), "1");
}

TEST_F(LeaseRenewal, PrefetchedJobsAreRenewedToo) {
    Worker worker{database.options(), options({.concurrency = 1, .lease = 6s, .heartbeat = 100ms})};
    worker.on("quick", [](JobContext&) { return Outcome::done(); });
    worker.on("t", waiting());
    worker.start();
    database.enqueue("q", "quick");
    ASSERT_TRUE(eventually([&] { return recorder->count("completed") == 1; }));
    const auto ids = database.enqueue_many("q", "t", 5);
    ASSERT_TRUE(started.wait());
    ASSERT_TRUE(eventually([&] { return recorder->count("claimed", ids[4]) == 1; }));
    EXPECT_TRUE(lease_moves_on(ids[4], 1s));
    EXPECT_EQ(recorder->count("started", ids[4]), 0U);
    go_on.open();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 6; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.violations(), "");
}

// C21: what still runs keeps its lease until it has returned, however long the shutdown takes.
TEST_F(LeaseRenewal, C21_Shutdown_RenewsUntilTheLastHandlerHasReturned) {
    const JobId id = database.enqueue("q", "t");
    Worker leaving{database.options(), options({.lease = 3s, .reaper = false})};
    leaving.on("t", waiting());
    leaving.start();
    ASSERT_TRUE(started.wait());
    auto stopping = std::async(std::launch::async, [&] { return leaving.stop(120s); });
    const auto vulture = std::make_shared<Recorder>();
    Worker staying{database.options(), {.queues = {"q"}, .lease = 3s, .observer = vulture}};
    staying.on("t", waiting());
    staying.start();
    EXPECT_TRUE(lease_moves_on(id, 4s));
    go_on.open();
    EXPECT_TRUE(stopping.get().clean);
    EXPECT_TRUE(staying.stop(60s).clean);
    EXPECT_EQ(runs.of(id), 1);
    EXPECT_EQ(vulture->returned() + vulture->count("claimed"), 0U);
    EXPECT_EQ(database.job(id, "attempt"), "1");
    EXPECT_EQ(database.job(id, "state"), "completed");
    EXPECT_EQ(database.violations(), "");
}

// -------------------------------------------------------------------------------------------------------------- losing

TEST_F(LeaseRenewal, AHandlerWhoseJobWasTakenAwayIsToldAndItsResultIsDiscarded) {
    const JobId id = database.enqueue("q", "t");
    Worker worker{database.options(), options({.lease = 20s, .heartbeat = 50ms, .reaper = false})};
    worker.on("t", waiting());
    worker.start();
    ASSERT_TRUE(started.wait());
    take_away();
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_TRUE(eventually([&] { return recorder->count("lease_lost", id) == 1; }));
    EXPECT_EQ(database.violations(), "");
    go_on.open();
    // The old result is fenced off; that of the next attempt counts, also if it was claimed before the loss was noticed.
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(reason, StopReason::lease_lost);
    EXPECT_EQ(recorder->count("lease_lost", id), 1U);
    EXPECT_EQ(recorder->count("completed", id), 1U);
    EXPECT_EQ(recorder->count("started", id), 2U);
    EXPECT_EQ(database.job(id, "attempt"), "2");
    EXPECT_EQ(runs.of(id), 2);
    EXPECT_EQ(database.violations(), "");
}

// Its lease ran out, by the worker's own clock, before anybody took it away: then it isn't claimed beside the handler.
TEST_F(LeaseRenewal, AJobKnownToBeLostIsNotClaimedBesideItsHandler) {
    Faults faults{database};
    faults.arm("running", "running", 1205);
    const JobId id = database.enqueue("q", "t");
    Worker worker{database.options(), options({.lease = 1s, .reaper = false})};
    worker.on("t", waiting());
    worker.on("other", [](JobContext&) { return Outcome::done(); });
    worker.start();
    ASSERT_TRUE(started.wait());
    ASSERT_TRUE(eventually([&] { return recorder->count("lease_lost", id) == 1; }));
    ASSERT_TRUE(eventually([&] { return Reaper{database.options(), {}}.reap_once().returned == 1; }));
    faults.disarm();
    for (int i = 0; i < 5; ++i) {
        const JobId other = database.enqueue("q", "other");
        EXPECT_TRUE(eventually([&] { return database.job(other, "state") == "completed"; })) << "others are claimed";
    }
    EXPECT_EQ(database.job(id, "state"), "pending");
    EXPECT_EQ(database.violations(), "");
    go_on.open();
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(recorder->story(id), "claimed started lease_lost claimed started completed");
    EXPECT_EQ(database.violations(), "");
}

TEST_F(LeaseRenewal, AJobOnlyReadyThatWasTakenAwayIsNotStarted) {
    Worker worker{database.options(), options({.concurrency = 1, .lease = 20s, .heartbeat = 50ms, .reaper = false})};
    worker.on("quick", [](JobContext&) { return Outcome::done(); });
    worker.on("t", waiting());
    worker.start();
    database.enqueue("q", "quick");
    ASSERT_TRUE(eventually([&] { return recorder->count("completed") == 1; }));
    const JobId running = database.enqueue("q", "t");
    ASSERT_TRUE(started.wait());
    const JobId ready = database.enqueue("q", "t", "{}", {.max_attempts = 1});
    ASSERT_TRUE(eventually([&] { return recorder->count("claimed", ready) == 1; }));
    database.look().run(fmt::format("UPDATE commitq_jobs SET lease_until=UTC_TIMESTAMP(6) WHERE id={}", ready));
    // A renewal may come in between; then there is nothing to reap yet.
    ASSERT_TRUE(eventually([&] {
        database.look().run(
            fmt::format("UPDATE commitq_jobs SET lease_until=UTC_TIMESTAMP(6) WHERE id={} AND state='running'", ready));
        return Reaper{database.options(), {}}.reap_once().dead == 1;
    }));
    EXPECT_TRUE(eventually([&] { return recorder->count("lease_lost", ready) == 1; }));
    go_on.open();
    EXPECT_TRUE(eventually([&] { return database.job(running, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.of(ready), 0);
    EXPECT_EQ(database.job(ready, "state"), "dead");
    EXPECT_EQ(database.violations(), "");
}

// Renewals don't get through; the worker doesn't know whether the job is still its own, and goes by its own clock.
TEST_F(LeaseRenewal, WithoutRenewalsTheHandlerIsToldAtTheDeadline) {
    Faults faults{database};
    faults.arm("running", "running", 1205);
    const JobId id = database.enqueue("q", "t");
    Worker worker{database.options(), options({.lease = 1s, .reaper = false})};
    worker.on("t", waiting());
    worker.start();
    ASSERT_TRUE(started.wait());
    EXPECT_TRUE(eventually([&] { return token.stop_requested(); }));
    EXPECT_GE(recorder->errors_with("heartbeat", 1205), 1U);
    EXPECT_EQ(database.violations(), "");
    faults.disarm();
    go_on.open();
    // Nobody took it: the fence lets the result through.
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(reason, StopReason::lease_lost);
    EXPECT_EQ(recorder->count("lease_lost", id), 1U);
    EXPECT_EQ(database.job(id, "attempt"), "1");
    EXPECT_EQ(database.violations(), "");
}

TEST_F(LeaseRenewal, AJobWhoseDeadlinePassesBeforeItsStartIsNotStarted) {
    Faults faults{database};
    Worker worker{database.options(), options({.concurrency = 1, .lease = 1s, .reaper = false})};
    worker.on("quick", [](JobContext&) { return Outcome::done(); });
    worker.on("t", waiting());
    worker.start();
    database.enqueue("q", "quick");
    ASSERT_TRUE(eventually([&] { return recorder->count("completed") == 1; }));
    faults.arm("running", "running", 1205);
    const auto ids = database.enqueue_many("q", "t", 5);
    ASSERT_TRUE(started.wait());
    std::vector<JobId> ready;
    EXPECT_TRUE(eventually([&] {
        ready.clear();
        for (const JobId id : ids) {
            if (recorder->count("lease_lost", id) == 1 && recorder->count("started", id) == 0) {
                ready.push_back(id);
            }
        }
        return !ready.empty();
    }));
    database.look().run("UPDATE commitq_jobs SET state='blocked' WHERE state='pending'");  // nothing new to claim
    go_on.open();
    EXPECT_TRUE(eventually([&] { return recorder->count("completed") >= 2; }));
    for (const JobId id : ready) {
        EXPECT_EQ(database.job(id, "state"), "running") << "until somebody reaps it";
        EXPECT_EQ(runs.of(id), 0);
    }
    faults.disarm();
    database.look().run("UPDATE commitq_jobs SET state='pending' WHERE state='blocked'");
    EXPECT_TRUE(eventually([&] {
        Reaper{database.options(), {}}.reap_once();
        return database.count("completed") == 6;
    }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.jobs(), 5U);
    EXPECT_TRUE(runs.repeated().empty());
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------------------------- timeout

TEST_F(LeaseRenewal, AHandlersTimeoutAsksItToStopAndItsResultCounts) {
    const JobId id = database.enqueue("q", "t");
    const JobId other = database.enqueue("q", "patient");
    std::atomic<bool> patient_stopped{false};
    Gate stopped;
    Worker worker{database.options(), options()};
    worker.on("t",
              [&](JobContext& job) {
                  Gate told;
                  const std::stop_callback on_stop{job.stop_token(), [&] { told.open(); }};
                  EXPECT_TRUE(told.wait());
                  reason = job.stop_reason();
                  stopped.open();
                  return Outcome::retry("took too long", 1h);
              },
              {.timeout = 100ms});
    worker.on("patient", [&](JobContext& job) {
        EXPECT_TRUE(stopped.wait());
        patient_stopped = job.stop_token().stop_requested();
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(
        eventually([&] { return recorder->count("completed", other) == 1 && recorder->count("retried", id) == 1; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(reason, StopReason::timeout);
    EXPECT_FALSE(patient_stopped);
    EXPECT_EQ(database.job(id, "last_error"), "took too long");
    EXPECT_EQ(database.violations(), "");
}

// --------------------------------------------------------------------------------------------------- a frozen process

/// Works on slow jobs until it is killed.
int works_slowly(const ChildArguments& arguments) {
    Worker worker{ConnectOptions::from_url(arguments.at(0)),
                  {.queues = {"q"}, .concurrency = 1, .lease = std::chrono::seconds{1}}};
    worker.on("t", [](JobContext&) {
        std::this_thread::sleep_for(20ms);
        return Outcome::done();
    });
    worker.start();
    std::this_thread::sleep_for(1h);
    return 0;
}
const ChildRole kWorksSlowly{"works_slowly", works_slowly};

// Nobody else is there to take the jobs over: those it held may be renewed after all, or come back by its own reaper, but
// none may be forgotten.
TEST_F(LeaseRenewal, AWorkerFrozenPastItsLeaseForgetsNoJob) {
    database.enqueue_many("q", "t", 150);
    Child child{"works_slowly", {url_of(database.options())}};
    for (int freeze = 1; freeze <= 3; ++freeze) {
        ASSERT_TRUE(eventually([&] { return database.count("completed") >= freeze * 15; }));
        child.signal(SIGSTOP);
        EXPECT_TRUE(eventually([&] {
            return database.look().number(
                       "SELECT COUNT(*) FROM commitq_jobs WHERE state='running' AND lease_until>UTC_TIMESTAMP(6)") == 0;
        }));
        EXPECT_EQ(database.violations(), "");
        child.signal(SIGCONT);
    }
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 150; }));
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------------- the statements alone

class RenewStatement : public LeaseRenewal {
protected:
    /// A job that @p of holds, with its lease over.
    JobId running(const core::Token& of) {
        const JobId id = database.enqueue("q", "t");
        database.look().run(
            fmt::format("UPDATE commitq_jobs SET state='running',owner={},attempt=1,max_attempts=5,"
                        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE id={}",
                        store::token_literal(of), id));
        return id;
    }
    store::RenewResult renew(const std::vector<JobId>& ids) {
        auto result = store::renew(session, tables, owner, ids, 60s);
        EXPECT_EQ(database.violations(), "");
        return result;
    }
    bool is_renewed(JobId id) { return database.job(id, "lease_until > UTC_TIMESTAMP(6) + INTERVAL 30 SECOND") == "1"; }

    const store::Tables tables{"commitq_"};
    const core::Token owner = core::make_token();
    const core::Token stranger = core::make_token();
    mysql::Session session{database.options(), mysql::Purpose::library};
};

TEST_F(RenewStatement, RenewsWhatIsOursAndSaysWhatIsNot) {
    const JobId ours = running(owner);
    const JobId theirs = running(stranger);
    const JobId pending = database.enqueue("q", "t");
    const JobId completed_by_us = running(owner);
    const JobId completed_by_them = running(stranger);
    database.look().run(
        fmt::format("UPDATE commitq_jobs SET state='completed',lease_until='1970-01-01',"
                    "finished_at=UTC_TIMESTAMP(6) WHERE id IN ({},{})",
                    completed_by_us, completed_by_them));
    const auto result = renew({ours, theirs, pending, completed_by_us, completed_by_them, 999'999});
    EXPECT_EQ(result.renewed, (std::vector<JobId>{ours}));
    EXPECT_EQ(result.completed, (std::vector<JobId>{completed_by_us}));
    EXPECT_EQ(result.lost, (std::vector<JobId>{theirs, pending, completed_by_them, 999'999}));
    EXPECT_TRUE(is_renewed(ours));
    EXPECT_FALSE(is_renewed(theirs));
}

TEST_F(RenewStatement, DoesNotWaitForALockedRowNorCallItLost) {
    const JobId free = running(owner);
    const JobId locked = running(owner);
    Connection handler = database.connect();
    handler.run("START TRANSACTION");
    handler.run(
        fmt::format("UPDATE commitq_jobs SET state='completed',finished_at=UTC_TIMESTAMP(6) WHERE id={}", locked));
    const auto result = renew({free, locked});
    EXPECT_EQ(result.renewed, (std::vector<JobId>{free}));
    EXPECT_TRUE(result.lost.empty());
    EXPECT_TRUE(result.completed.empty());
    handler.run("ROLLBACK");
    EXPECT_EQ(renew({locked}).renewed, (std::vector<JobId>{locked}));
}

TEST_F(RenewStatement, NothingToRenewAsksNothing) {
    session.interrupt();  // a question would fail
    EXPECT_TRUE(renew({}).renewed.empty());
}

}  // namespace
}  // namespace commitq::test
