// start, stop, run_once, and what each refuses.
#include "support/recorder.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace commitq::test {
namespace {

/// Far above what any stop should take, for slow machines; what doesn't come back within it hangs.
constexpr auto kHang = 60s;

class WorkerLifecycle : public ::testing::Test {
protected:
    WorkerOptions options(WorkerOptions more = {}) {
        more.queues = {"q"};
        more.observer = recorder;
        return more;
    }
    static Outcome done(JobContext&) { return Outcome::done(); }
    void expect_sound() { EXPECT_EQ(database.violations(), ""); }
    long running() { return database.count("running"); }

    Database database;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
};

// ---------------------------------------------------------------------------------------------------- what is refused

TEST_F(WorkerLifecycle, StartTwiceIsRefusedAndTheFirstGoesOn) {
    Worker worker{database.options(), options()};
    worker.on("t", done);
    worker.start();
    EXPECT_EQ(code_of([&] { worker.start(); }), Errc::wrong_state);
    const JobId id = database.enqueue("q", "t");
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    worker.stop(60s);
    EXPECT_EQ(code_of([&] { worker.start(); }), Errc::wrong_state) << "nor after stop";
}

TEST_F(WorkerLifecycle, HandlersAreRefusedOnceStarted) {
    Worker worker{database.options(), options()};
    worker.on("t", done);
    worker.start();
    EXPECT_EQ(code_of([&] { worker.on("other", done); }), Errc::wrong_state);
}

TEST_F(WorkerLifecycle, AWorkerWithoutHandlersIsRefused) {
    Worker worker{database.options(), options()};
    EXPECT_EQ(code_of([&] { worker.start(); }), Errc::invalid_argument);
    EXPECT_EQ(code_of([&] { worker.run_once(); }), Errc::invalid_argument);
    worker.on("t", done);
    worker.start();
    EXPECT_TRUE(worker.stop(60s).clean);
}

TEST_F(WorkerLifecycle, BadHandlersAreRefused) {
    Worker worker{database.options(), options()};
    worker.on("t", done);
    EXPECT_EQ(code_of([&] { worker.on("t", done); }), Errc::invalid_argument) << "two for one type";
    EXPECT_EQ(code_of([&] { worker.on("", done); }), Errc::invalid_argument);
    EXPECT_EQ(code_of([&] { worker.on("with blank", done); }), Errc::invalid_argument);
    EXPECT_EQ(code_of([&] { worker.on("empty", Handler{}); }), Errc::invalid_argument);
    EXPECT_EQ(code_of([&] { worker.on("attempts", done, {.max_attempts = 0}); }), Errc::invalid_argument);
    EXPECT_EQ(code_of([&] { worker.on("timeout", done, {.timeout = -1ms}); }), Errc::invalid_argument);
}

TEST_F(WorkerLifecycle, C22_ALeaseBelowTwoHeartbeatsIsRefused) {
    const auto refused = [&](WorkerOptions bad) {
        bad.queues = {"q"};
        return code_of([&] { Worker{database.options(), bad}; }) == Errc::invalid_argument;
    };
    EXPECT_TRUE(refused({.lease = 10s, .heartbeat = 5'001ms}));
    EXPECT_FALSE(refused({.lease = 10s, .heartbeat = 5s}));
    EXPECT_TRUE(refused({.lease = 999ms}));
    EXPECT_TRUE(refused({.lease = 10s, .heartbeat = -1ms}));
}

TEST_F(WorkerLifecycle, BadOptionsAreRefusedByName) {
    const auto message = [&](WorkerOptions bad) {
        try {
            Worker{database.options(), std::move(bad)};
        } catch (const Error& error) {
            return std::string{error.code() == Errc::invalid_argument ? error.what() : "another code"};
        }
        return std::string{"accepted"};
    };
    const auto names = [&](const std::string& word, WorkerOptions bad) {
        EXPECT_NE(message(std::move(bad)).find(word), std::string::npos) << word;
    };
    names("queue", {});
    names("queue", {.queues = {"q", "q"}});
    names("queue", {.queues = {std::string(65, 'q')}});
    names("prefix", {.queues = {"q"}, .prefix = "a-b"});
    names("concurrency", {.queues = {"q"}, .concurrency = 0});
    names("batch", {.queues = {"q"}, .batch = 1'001});
    names("prefetch", {.queues = {"q"}, .prefetch = -1});
    names("lease", {.queues = {"q"}, .lease = 25h});
    names("poll_min", {.queues = {"q"}, .poll_min = 0ms});
    names("poll_max", {.queues = {"q"}, .poll_min = 10ms, .poll_max = 9ms});
    names("max_attempts", {.queues = {"q"}, .max_attempts = 0});
    ConnectOptions nowhere = database.options();
    nowhere.database.clear();
    EXPECT_EQ(code_of([&] { Worker{nowhere, options()}; }), Errc::invalid_argument);
}

TEST_F(WorkerLifecycle, AFailedStartLeavesNothingRunningAndCanBeRepeated) {
    database.look().run("UPDATE commitq_schema SET version=2");
    Worker worker{database.options(), options()};
    worker.on("t", done);
    EXPECT_EQ(code_of([&] { worker.start(); }), Errc::schema_too_new);
    database.look().run("UPDATE commitq_schema SET version=1");
    worker.start();
    const JobId id = database.enqueue("q", "t");
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
}

TEST_F(WorkerLifecycle, StartSaysWhatIsWrongWithTheServer) {
    const auto start_with = [&](const ConnectOptions& connection) {
        Worker worker{connection, options()};
        worker.on("t", done);
        return code_of([&] { worker.start(); });
    };
    ConnectOptions wrong_password = database.options();
    wrong_password.password = "wrong";
    EXPECT_EQ(start_with(wrong_password), Errc::access_denied);
    ConnectOptions nobody = database.options();
    nobody.socket = "/nowhere/at/all.sock";
    EXPECT_EQ(start_with(nobody), Errc::connection_lost);
    Database empty{false};
    EXPECT_EQ(start_with(empty.options()), Errc::schema_missing);
}

// -------------------------------------------------------------------------------------------------------------- stop

TEST_F(WorkerLifecycle, StopBeforeStartAndTwiceDoesNothing) {
    Worker worker{database.options(), options()};
    worker.on("t", done);
    EXPECT_TRUE(worker.stop(0s).clean);
    worker.start();
    EXPECT_TRUE(worker.stop(60s).clean);
    const StopReport again = worker.stop(60s);
    EXPECT_TRUE(again.clean);
    EXPECT_EQ(again.completed + again.released + again.abandoned, 0U);
}

TEST_F(WorkerLifecycle, ADestructorWithoutStopIsEnough) {
    const JobId id = database.enqueue("q", "t");
    {
        Worker worker{database.options(), options()};
        worker.on("t", done);
        worker.start();
        EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    }
    { const Worker never_started{database.options(), options()}; }
    EXPECT_TRUE(eventually([&] { return connections(database).empty(); })) << "all connections are closed";
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_workers"), 0) << "and its row is gone";
    expect_sound();
}

TEST_F(WorkerLifecycle, StopWaitsForRunningHandlersAndClaimsNothingMore) {
    Gate started;
    Gate go_on;
    Worker worker{database.options(), options()};
    worker.on("t", [&](JobContext&) {
        started.open();
        go_on.wait();
        return Outcome::done();
    });
    const JobId first = database.enqueue("q", "t");
    worker.start();
    ASSERT_TRUE(started.wait());
    auto stopping = std::async(std::launch::async, [&] { return worker.stop(120s); });
    const JobId later = database.enqueue("q", "t");
    worker.wake();
    EXPECT_EQ(stopping.wait_for(300ms), std::future_status::timeout);
    go_on.open();
    const StopReport report = stopping.get();
    EXPECT_TRUE(report.clean);
    EXPECT_EQ(report.completed, 1U);
    EXPECT_EQ(report.abandoned, 0U);
    EXPECT_EQ(database.job(first, "state"), "completed");
    // The claim may have been under way when stop was called; then the job went back.
    EXPECT_EQ(database.job(later, "state"), "pending");
    EXPECT_EQ(database.job(later, "attempt"), "0");
    expect_sound();
}

class Prefetched : public WorkerLifecycle {
protected:
    /// A worker with one job running, which waits for the gate, and more of them ready.
    std::unique_ptr<Worker> hold_jobs() {
        auto worker = std::make_unique<Worker>(database.options(), options({.concurrency = 1, .prefetch = 10}));
        worker->on("quick", done);
        worker->on("slow", [this](JobContext& job) {
            token = job.stop_token();
            started.open();
            go_on.wait();
            reason = job.stop_reason();
            ended.open();
            return Outcome::done();
        });
        worker->start();
        const JobId quick = database.enqueue("q", "quick");
        EXPECT_TRUE(eventually([&] { return recorder->count("completed", quick) == 1; }));
        ids = database.enqueue_many("q", "slow", 10);
        EXPECT_TRUE(started.wait());
        EXPECT_TRUE(eventually([&] { return running() > 1; })) << "handlers were quick so far: some are prefetched";
        return worker;
    }

    /// Jobs that never started are as they were before they were claimed.
    void expect_untouched(std::size_t from) {
        for (std::size_t i = from; i < ids.size(); ++i) {
            EXPECT_EQ(database.job(ids[i], "state"), "pending");
            EXPECT_EQ(database.job(ids[i], "attempt"), "0");
            EXPECT_EQ(database.job(ids[i], "owner IS NULL AND started_at IS NULL AND lease_until IS NULL"), "1");
            EXPECT_TRUE(
                eventually([&] { return recorder->count("released", ids[i]) == recorder->count("claimed", ids[i]); }));
        }
        expect_sound();
    }

    Gate started;
    Gate go_on;
    Gate ended;
    std::stop_token token{};
    StopReason reason = StopReason::none;
    std::vector<JobId> ids{};
};

TEST_F(Prefetched, StopReleasesThemWithoutUsingAnAttempt) {
    const auto worker = hold_jobs();
    auto stopping = std::async(std::launch::async, [&] { return worker->stop(120s); });
    EXPECT_TRUE(eventually([&] { return running() == 1; })) << "released while the first still runs";
    expect_untouched(1);
    go_on.open();
    const StopReport report = stopping.get();
    EXPECT_TRUE(report.clean);
    EXPECT_EQ(report.completed, 1U);
    EXPECT_EQ(report.released, recorder->count("released"));
    EXPECT_GE(report.released, 1U);
    EXPECT_EQ(database.job(ids[0], "state"), "completed");
    EXPECT_EQ(reason, StopReason::none);

    // Another worker takes them as if nothing had been.
    Worker next{database.options(), options()};
    next.on("slow", [](JobContext& job) {
        EXPECT_EQ(job.attempt(), 1);
        return Outcome::done();
    });
    EXPECT_EQ(testing::drain(next), 9U);
    expect_sound();
}

TEST_F(Prefetched, StopWithoutADeadlineReleasesThemTooAndFiresTheStopTokenAtOnce) {
    const auto worker = hold_jobs();
    const StopReport report = worker->stop(0s);
    EXPECT_TRUE(token.stop_requested());
    EXPECT_FALSE(report.clean);
    EXPECT_EQ(report.abandoned, 1U);
    EXPECT_EQ(report.completed, 0U);
    EXPECT_EQ(report.released, recorder->count("released"));
    EXPECT_GE(report.released, 1U);
    EXPECT_EQ(running(), 1);
    expect_untouched(1);
    go_on.open();
    EXPECT_TRUE(ended.wait());
    EXPECT_EQ(reason, StopReason::shutdown);
    // The abandoned one comes back by its lease.
    expire_leases(database);
    EXPECT_EQ((Reaper{database.options(), {}}.reap_once().returned), 1U);
    EXPECT_EQ(database.job(ids[0], "attempt"), "1");
    expect_sound();
}

TEST_F(Prefetched, TheDestructorReleasesThemToo) {
    hold_jobs().reset();
    EXPECT_EQ(running(), 1);
    expect_untouched(1);
    go_on.open();
    EXPECT_TRUE(ended.wait());
}

TEST_F(WorkerLifecycle, AHandlerThatHeedsItsStopTokenIsNotAbandoned) {
    Gate started;
    Worker worker{database.options(), options()};
    StopReason reason = StopReason::none;
    worker.on("t", [&](JobContext& job) {
        Gate stopped;
        const std::stop_callback on_stop{job.stop_token(), [&] { stopped.open(); }};
        started.open();
        stopped.wait();
        reason = job.stop_reason();
        return Outcome::snooze(0s);
    });
    const JobId id = database.enqueue("q", "t");
    worker.start();
    ASSERT_TRUE(started.wait());
    const auto began = std::chrono::steady_clock::now();
    const StopReport report = worker.stop(3s);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 2s) << "the token fires when a third of the deadline is left";
    EXPECT_EQ(reason, StopReason::shutdown);
    EXPECT_EQ(database.job(id, "state"), "pending");
    EXPECT_EQ(database.job(id, "attempt"), "0");
    EXPECT_EQ(report.abandoned, 0U);
    EXPECT_TRUE(report.clean);
    expect_sound();
}

TEST_F(WorkerLifecycle, StopReturnsBesideAHandlerThatIgnoresItsStopToken) {
    Gate started;
    Gate go_on;
    Gate ended;
    const JobId id = database.enqueue("q", "t");
    {
        Worker worker{database.options(), options()};
        worker.on("t", [&](JobContext&) {
            started.open();
            go_on.wait();
            ended.open();
            return Outcome::done();
        });
        worker.start();
        ASSERT_TRUE(started.wait());
        const auto began = std::chrono::steady_clock::now();
        const StopReport report = worker.stop(1s);
        EXPECT_LT(std::chrono::steady_clock::now() - began, kHang);
        EXPECT_EQ(report.abandoned, 1U);
        EXPECT_FALSE(report.clean);
    }
    go_on.open();  // the worker is gone; its handler is not
    EXPECT_TRUE(ended.wait());
    EXPECT_EQ(database.job(id, "state"), "running") << "nobody writes the result any more: the lease runs out";
    expect_sound();
    expire_leases(database);
    EXPECT_EQ((Reaper{database.options(), {}}.reap_once().returned), 1U);
    expect_sound();
}

// ------------------------------------------------------------------------------------------------------------ run_once

TEST_F(WorkerLifecycle, RunOnceRunsABatchOnThisThread) {
    database.enqueue_many("q", "t", 5);
    Worker worker{database.options(), options({.batch = 3})};
    const auto here = std::this_thread::get_id();
    worker.on("t", [&](JobContext&) {
        EXPECT_TRUE(std::this_thread::get_id() == here);
        return Outcome::done();
    });
    EXPECT_EQ(worker.run_once(), 3U);
    expect_sound();
    EXPECT_EQ(worker.run_once(), 2U);
    EXPECT_EQ(worker.run_once(), 0U);
    EXPECT_EQ(database.count("completed"), 5);
    EXPECT_EQ(recorder->count("completed"), 5U);
    expect_sound();
}

TEST_F(WorkerLifecycle, RunOnceIsRefusedWhileStartedAndAfterwards) {
    Worker worker{database.options(), options()};
    worker.on("t", done);
    EXPECT_EQ(worker.run_once(), 0U);
    worker.start();
    EXPECT_EQ(code_of([&] { worker.run_once(); }), Errc::wrong_state);
    worker.stop(60s);
    EXPECT_EQ(code_of([&] { worker.run_once(); }), Errc::wrong_state);
}

TEST_F(WorkerLifecycle, RunOnceGoesOnAfterItsConnectionWasKilled) {
    Worker worker{database.options(), options()};
    worker.on("t", done);
    EXPECT_EQ(worker.run_once(), 0U);
    EXPECT_EQ(kill_connections(database), 1);
    const JobId id = database.enqueue("q", "t");
    EXPECT_EQ(code_of([&] { worker.run_once(); }), Errc::connection_lost);
    EXPECT_EQ(worker.run_once(), 1U);
    EXPECT_EQ(database.job(id, "state"), "completed");
    expect_sound();
}

TEST_F(WorkerLifecycle, RunOnceWritesAResultAlthoughTheConnectionWasKilledMeanwhile) {
    Worker worker{database.options(), options()};
    int runs = 0;
    worker.on("t", [&](JobContext&) {
        ++runs;
        kill_connections(database);
        return Outcome::done();
    });
    const JobId id = database.enqueue("q", "t");
    EXPECT_EQ(worker.run_once(), 1U);
    EXPECT_EQ(database.job(id, "state"), "completed");
    EXPECT_EQ(database.job(id, "attempt"), "1");
    EXPECT_EQ(runs, 1);
    expect_sound();
}

TEST_F(WorkerLifecycle, WhatAnErrorLeftOfABatchRunsWithTheNextOne) {
    Faults faults{database};
    const auto ids = database.enqueue_many("q", "t", 3);
    Worker worker{database.options(), options()};
    Runs runs;
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        return Outcome::done();
    });
    faults.arm("running", "completed", 1644, ids[1]);  // refused for good
    EXPECT_EQ(code_of([&] { worker.run_once(); }), Errc::server);
    EXPECT_EQ(database.count("completed"), 1);
    faults.disarm();
    EXPECT_EQ(worker.run_once(), 1U) << "the third; the second waits for its lease to run out";
    EXPECT_EQ(database.job(ids[1], "state"), "running");
    EXPECT_TRUE(runs.repeated().empty());
    expect_sound();
}

// ------------------------------------------------------------------------------------------- several in one process

TEST_F(WorkerLifecycle, WorkersAndQueuesWithOtherPrefixesDoNotMeet) {
    constexpr std::array kPrefixes = {"commitq_", "a_", "B2_"};
    std::vector<std::unique_ptr<Worker>> workers;
    std::array<std::atomic<int>, kPrefixes.size()> runs{};
    for (std::size_t i = 0; i < kPrefixes.size(); ++i) {
        Schema{database.options(), kPrefixes[i]}.migrate();
        Connection db = database.connect();
        db.run("START TRANSACTION");
        const std::vector<NewJob> jobs(10 + i, {.type = "t", .payload = kPrefixes[i]});
        Queue{"q", {.prefix = kPrefixes[i]}}.enqueue_many(db, jobs);
        db.run("COMMIT");
    }
    for (std::size_t i = 0; i < kPrefixes.size(); ++i) {
        for (int copy = 0; copy < 2; ++copy) {
            auto& worker = workers.emplace_back(
                std::make_unique<Worker>(database.options(), options({.prefix = kPrefixes[i], .concurrency = 2})));
            worker->on("t", [&, i](JobContext& job) {
                EXPECT_EQ(job.payload(), kPrefixes[i]);
                ++runs[i];
                return Outcome::done();
            });
            worker->start();
        }
    }
    for (std::size_t i = 0; i < kPrefixes.size(); ++i) {
        EXPECT_TRUE(eventually([&] {
            return database.look().number(fmt::format("SELECT COUNT(*) FROM {}jobs WHERE state='completed'",
                                                      kPrefixes[i])) == static_cast<long>(10 + i);
        }));
    }
    for (auto& worker : workers) {
        EXPECT_TRUE(worker->stop(60s).clean);
    }
    for (std::size_t i = 0; i < kPrefixes.size(); ++i) {
        EXPECT_EQ(runs[i], static_cast<int>(10 + i));
    }
    EXPECT_EQ(recorder->error_text(), "");
    expect_sound();
}

TEST_F(WorkerLifecycle, C23_WorkersOfOneProcessHaveDifferentOwners) {
    constexpr int kWorkers = 8;
    Gate go_on;
    std::atomic<int> started{0};
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < kWorkers; ++i) {
        auto& worker = workers.emplace_back(
            std::make_unique<Worker>(database.options(), options({.concurrency = 1, .prefetch = 0})));
        worker->on("t", [&](JobContext&) {
            ++started;
            go_on.wait();
            return Outcome::done();
        });
        worker->start();
    }
    database.enqueue_many("q", "t", kWorkers);
    EXPECT_TRUE(eventually([&] { return started == kWorkers; }));
    EXPECT_EQ(database.look().number("SELECT COUNT(DISTINCT owner) FROM commitq_jobs WHERE state='running'"), kWorkers);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_workers"), kWorkers);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_workers w JOIN commitq_jobs j ON j.owner=w.token"),
              kWorkers);
    go_on.open();
    for (auto& worker : workers) {
        EXPECT_TRUE(worker->stop(60s).clean);
    }
    expect_sound();
}

TEST_F(WorkerLifecycle, TheWorkersTableSaysWhoIsAliveAndWhatTheyDid) {
    database.enqueue_many("q", "t", 3);
    database.enqueue("q", "bad");
    Worker worker{database.options(), options({.lease = 1s})};
    worker.on("t", done);
    worker.on("bad", [](JobContext&) { return Outcome::dead("no"); });
    worker.start();
    const std::string row = fmt::format(
        "SELECT COUNT(*) FROM commitq_workers WHERE pid={} AND queues='q' AND lease_ms=1000 AND held=0 AND completed=3 "
        "AND"
        " failed=1 AND heartbeat_at>started_at",
        getpid());
    EXPECT_TRUE(eventually([&] { return database.look().number(row) == 1; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_workers"), 0);
    EXPECT_EQ(database.look().value("SELECT queue FROM commitq_queues"), "q");
}

}  // namespace
}  // namespace commitq::test
