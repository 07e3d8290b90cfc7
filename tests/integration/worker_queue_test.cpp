// Which jobs a worker takes, in which order, and when.
#include "support/recorder.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

namespace commitq::test {
namespace {

class WorkerQueue : public ::testing::Test {
protected:
    /// Notes in which order jobs run.
    void note(const JobContext& job) {
        const std::scoped_lock lock{mutex};
        order.push_back(job.id());
        queues.emplace_back(job.queue());
        priorities.push_back(job.priority());
    }
    std::size_t ran() {
        const std::scoped_lock lock{mutex};
        return order.size();
    }
    /// A worker that takes one job after the other and notes them.
    std::unique_ptr<Worker> one_by_one(std::vector<std::string> of, WorkerOptions options = {}) {
        options.queues = std::move(of);
        options.concurrency = 1;
        options.batch = 1;
        options.prefetch = 0;
        options.observer = recorder;
        auto worker = std::make_unique<Worker>(database.options(), options);
        worker->on("t", [this](JobContext& job) {
            note(job);
            return Outcome::done();
        });
        return worker;
    }
    void run_until(Worker& worker, std::size_t jobs) {
        worker.start();
        EXPECT_TRUE(eventually([&] { return ran() == jobs; }));
        EXPECT_TRUE(worker.stop(60s).clean);
        EXPECT_EQ(ran(), jobs);
        EXPECT_EQ(database.violations(), "");
    }
    static Outcome done(JobContext&) { return Outcome::done(); }
    /// Whether its last claim found nothing, and it waits for a wake or its poll.
    static bool is_idle(const Worker& worker) {
        const auto loops = worker.health().loops;
        return std::any_of(loops.begin(), loops.end(),
                           [](const LoopHealth& loop) { return loop.name == "claim" && loop.waits_for == "work"; });
    }

    Database database;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
    std::mutex mutex;
    std::vector<JobId> order;
    std::vector<std::string> queues;
    std::vector<int> priorities;
};

// --------------------------------------------------------------------------------------------------- order in a queue

TEST_F(WorkerQueue, JobsOfABetterPriorityGoFirstAndOlderOnesBeforeNewer) {
    std::vector<std::pair<int, JobId>> expected;
    for (int i = 0; i < 60; ++i) {
        const int priority = (i * 7) % 10;
        expected.emplace_back(priority, database.enqueue("q", "t", "{}", {.priority = priority}));
    }
    std::sort(expected.begin(), expected.end());
    const auto worker = one_by_one({"q"});
    run_until(*worker, expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(order[i], expected[i].second) << i;
    }
}

TEST_F(WorkerQueue, AnUrgentJobOvertakesABacklog) {
    database.enqueue_many("q", "t", 600);
    database.look().run("UPDATE commitq_jobs SET priority=9");
    const auto worker = one_by_one({"q"});
    worker->start();
    EXPECT_TRUE(eventually([&] { return ran() >= 1; }));
    for (int i = 0; i < 10; ++i) {
        database.enqueue("q", "t", "{}", {.priority = 0});
    }
    EXPECT_TRUE(eventually([&] { return ran() == 610; }));
    EXPECT_TRUE(worker->stop(60s).clean);
    const auto last_urgent = std::find(priorities.rbegin(), priorities.rend(), 0);
    EXPECT_GT(last_urgent - priorities.rbegin(), 0) << "there was still some of the backlog left";
}

TEST_F(WorkerQueue, TheOrderHoldsForJobsRetriedMeanwhile) {
    const JobId retried = database.enqueue("q", "again", "{}", {.priority = 0});
    const JobId next = database.enqueue("q", "t", "{}", {.priority = 1});
    const auto worker = one_by_one({"q"});
    worker->on("again", [&](JobContext& job) {
        note(job);
        return job.attempt() == 1 ? Outcome::retry("again", 0s) : Outcome::done();
    });
    EXPECT_EQ(testing::drain(*worker), 3U);
    EXPECT_EQ(order, (std::vector<JobId>{retried, retried, next}));
}

// ------------------------------------------------------------------------------------------------------- several queues

TEST_F(WorkerQueue, SeveralQueuesAreServedInTurn) {
    for (const char* queue : {"a", "b", "c"}) {
        database.enqueue_many(queue, "t", 40);
    }
    const auto worker = one_by_one({"a", "b", "c"});
    run_until(*worker, 120);
    for (const char* queue : {"a", "b", "c"}) {
        EXPECT_EQ(std::count(queues.begin(), queues.begin() + 30, queue), 10) << queue;
    }
}

TEST_F(WorkerQueue, ALongBacklogDoesNotStarveAShortQueue) {
    database.enqueue_many("long", "t", 300);
    database.enqueue_many("short", "t", 3);
    const auto worker = one_by_one({"long", "short"});
    run_until(*worker, 303);
    EXPECT_EQ(std::count(queues.begin(), queues.begin() + 10, "short"), 3);
}

TEST_F(WorkerQueue, StrictOrderEmptiesTheFirstQueueFirst) {
    for (const char* queue : {"c", "b", "a"}) {
        database.enqueue_many(queue, "t", 20);
    }
    database.enqueue("c", "t", "{}", {.priority = 0});
    const auto worker = one_by_one({"a", "b", "c"}, {.order = QueueOrder::strict});
    run_until(*worker, 61);
    EXPECT_TRUE(std::is_sorted(queues.begin(), queues.end()));
}

TEST_F(WorkerQueue, MoreQueuesThanOneLookAsksForAreAllServed) {
    std::vector<std::string> names;
    for (int i = 0; i < 230; ++i) {
        names.push_back(fmt::format("queue.{}", i));
    }
    for (const int i : {0, 9, 10, 11, 199, 200, 229}) {
        database.enqueue(names[static_cast<std::size_t>(i)], "t");
    }
    const auto worker = one_by_one(names);
    run_until(*worker, 7);
}

TEST_F(WorkerQueue, OtherQueuesAreLeftAlone) {
    const JobId other = database.enqueue("Q", "t");
    const JobId mine = database.enqueue("q", "t");
    const auto worker = one_by_one({"q"});
    run_until(*worker, 1);
    EXPECT_EQ(database.job(mine, "state"), "completed");
    EXPECT_EQ(database.job(other, "state"), "pending");
}

// ----------------------------------------------------------------------------------------------------------------- time

TEST_F(WorkerQueue, ADelayedJobRunsNoEarlierByTheServersClock) {
    std::vector<JobId> ids;
    for (int i = 0; i < 10; ++i) {
        ids.push_back(database.enqueue("q", "t", "{}", {.delay = i * 100ms}));
    }
    const JobId later = database.enqueue("q", "t", "{}", {.delay = 1h});
    const JobId past = database.enqueue("q", "t", "{}", {.at = std::chrono::system_clock::now() - 24h});
    const auto worker = one_by_one({"q"});
    run_until(*worker, 11);
    for (const JobId id : ids) {
        EXPECT_EQ(database.job(id, "started_at>=available_at"), "1");
    }
    EXPECT_EQ(database.job(past, "state"), "completed");
    EXPECT_EQ(database.job(later, "state"), "pending");
    EXPECT_EQ(database.job(later, "attempt"), "0");
    for (const Event& event : recorder->events("claimed")) {
        EXPECT_GE(event.wait, 0us);
    }
}

// The worker polls once a day: it has to know by itself when the next job becomes due.
TEST_F(WorkerQueue, AnIdleWorkerWakesForTheNextDueJob) {
    const JobId id = database.enqueue("q", "t", "{}", {.delay = 500ms});
    const auto worker = one_by_one({"q"}, {.poll_min = 24h, .poll_max = 24h});
    run_until(*worker, 1);
    EXPECT_EQ(database.job(id, "started_at>=available_at"), "1");
}

TEST_F(WorkerQueue, NotifyStartsAClaimAtOnce) {
    const Queue before{"q"};
    const Queue after{"q"};
    const auto worker = one_by_one({"q"}, {.poll_min = 24h, .poll_max = 24h});
    worker->follow(before);
    worker->start();
    worker->follow(after);
    std::size_t jobs = 0;
    for (int round = 0; round < 20; ++round) {
        for (const Queue& queue : {before, after, Queue{before}}) {  // a copy shares its followers
            Connection db = database.connect();
            db.run("START TRANSACTION");
            queue.enqueue(db, "t", "{}");
            db.run("COMMIT");
            queue.notify();
            ++jobs;
            ASSERT_TRUE(eventually([&] { return ran() == jobs; })) << "a wake-up got lost";
        }
    }
    EXPECT_TRUE(worker->stop(60s).clean);
    before.notify();  // nobody follows any more
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerQueue, WakeStartsAClaimAtOnce) {
    const auto worker = one_by_one({"q"}, {.poll_min = 24h, .poll_max = 24h});
    worker->wake();  // not started: nothing happens
    worker->start();
    for (std::size_t jobs = 1; jobs <= 20; ++jobs) {
        database.enqueue("q", "t");
        worker->wake();
        ASSERT_TRUE(eventually([&] { return ran() == jobs; })) << "a wake-up got lost";
    }
    EXPECT_TRUE(worker->stop(60s).clean);
    worker->wake();
}

// A wake claims where the last job was, without a look: not where a better priority has jobs.
TEST_F(WorkerQueue, AfterAWakeABetterPriorityGoesFirstToo) {
    const auto worker = one_by_one({"q"}, {.poll_min = 24h, .poll_max = 24h});
    worker->start();
    const auto announce = [&](const std::vector<int>& jobs) {
        // Else they could be committed while the worker, on its way from the best priority on, is past theirs.
        ASSERT_TRUE(eventually([&] { return is_idle(*worker); }));
        const std::size_t before = ran();
        Connection db = database.connect();
        db.run("START TRANSACTION");
        for (const int priority : jobs) {
            Queue{"q"}.enqueue(db, "t", "{}", {.priority = priority});
        }
        db.run("COMMIT");
        worker->wake();
        ASSERT_TRUE(eventually([&] { return ran() == before + jobs.size(); })) << "a wake-up got lost";
    };
    for (const std::vector<int>& jobs : std::vector<std::vector<int>>{{5}, {5, 3}, {9, 5, 3, 0}, {0}, {5, 0}}) {
        announce(jobs);
    }
    EXPECT_TRUE(worker->stop(60s).clean);
    EXPECT_EQ(priorities, (std::vector<int>{5, 3, 5, 0, 3, 5, 9, 0, 0, 5}));
}

TEST_F(WorkerQueue, NotifyAfterTheWorkersEndIsHarmless) {
    const Queue queue{"q"};
    one_by_one({"q"})->follow(queue);
    queue.notify();
}

// C17: neither a late commit nor a hole in the ids hides a job.
TEST_F(WorkerQueue, C17_ALateCommitBehindConsumedIds_Runs) {
    const auto worker = one_by_one({"q"});
    worker->start();
    Connection late = database.connect();
    late.run("START TRANSACTION");
    const JobId first = Queue{"q"}.enqueue(late, "t", "late");
    Connection gone = database.connect();
    gone.run("START TRANSACTION");
    const JobId hole = Queue{"q"}.enqueue(gone, "t", "rolled back");
    const JobId third = database.enqueue("q", "t");
    EXPECT_TRUE(eventually([&] { return ran() == 1; }));
    gone.run("ROLLBACK");
    const JobId fourth = database.enqueue("q", "t");
    EXPECT_TRUE(eventually([&] { return ran() == 2; }));
    late.run("COMMIT");
    EXPECT_TRUE(eventually([&] { return ran() == 3; }));
    EXPECT_TRUE(worker->stop(60s).clean);
    EXPECT_EQ(order, (std::vector<JobId>{third, fourth, first}));
    EXPECT_EQ(database.job(hole, "state"), "");
    EXPECT_EQ(database.violations(), "");
}

// The same while the worker never gets idle: the late one stands before the place that claims have come to.
TEST_F(WorkerQueue, C17_ALateCommitIntoABacklog_RunsBeforeItsEnd) {
    Connection late = database.connect();
    late.run("START TRANSACTION");
    const JobId first = Queue{"q"}.enqueue(late, "t", "late");
    database.enqueue_many("q", "t", 600);
    const auto worker = one_by_one({"q"});
    worker->start();
    EXPECT_TRUE(eventually([&] { return ran() >= 20; }));
    late.run("COMMIT");
    EXPECT_TRUE(eventually([&] { return ran() == 601; }));
    EXPECT_TRUE(worker->stop(60s).clean);
    EXPECT_NE(std::find(order.begin(), order.end(), first), order.end());
    EXPECT_NE(order.back(), first) << "found by the next look, not when the backlog was done";
}

// The jobs that a pass handles go away from under it, and many are due at the same time: none is skipped, none taken twice.
TEST_F(WorkerQueue, C29_APassOverFailingJobs_RaisesEachOnce) {
    database.enqueue_many("q", "again", 230);
    for (int pass = 1; pass <= 3; ++pass) {
        database.look().run("UPDATE commitq_jobs SET available_at='2020-01-01'");
        Worker worker{database.options(), {.queues = {"q"}, .batch = 50}};
        worker.on("again", [&](JobContext& job) {
            EXPECT_EQ(job.attempt(), pass);
            return Outcome::retry("still down", 1h);
        });
        EXPECT_EQ(testing::drain(worker), 230U);
        EXPECT_EQ(database.look().number(fmt::format("SELECT COUNT(*) FROM commitq_jobs WHERE attempt={}", pass)), 230);
        EXPECT_EQ(database.violations(), "");
    }
}

// -------------------------------------------------------------------------------------------------------------- how many

TEST_F(WorkerQueue, WithoutPrefetchAWorkerHoldsWhatItRuns) {
    Gate go_on;
    Worker worker{database.options(), {.queues = {"q"}, .concurrency = 2, .prefetch = 0, .observer = recorder}};
    worker.on("quick", done);
    worker.on("slow", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    worker.start();
    database.enqueue_many("q", "quick", 20);
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 20; }));
    database.enqueue_many("q", "slow", 10);
    EXPECT_TRUE(eventually([&] { return recorder->count("started") == 22; }));
    EXPECT_EQ(database.count("running"), 2);
    go_on.open();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 30; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerQueue, AWorkerWithSlowHandlersLeavesTheRestToOthers) {
    Gate go_on;
    std::atomic<int> by_other{0};
    database.enqueue_many("q", "t", 30);
    Worker slow{database.options(), {.queues = {"q"}, .concurrency = 2}};
    slow.on("t", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    slow.start();
    EXPECT_TRUE(eventually([&] { return database.count("running") == 2; }));
    Worker other{database.options(), {.queues = {"q"}}};
    other.on("t", [&](JobContext&) {
        ++by_other;
        return Outcome::done();
    });
    other.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 28; })) << "while the slow one holds two";
    EXPECT_EQ(by_other, 28);
    go_on.open();
    EXPECT_TRUE(slow.stop(60s).clean);
    EXPECT_TRUE(other.stop(60s).clean);
    EXPECT_EQ(database.count("completed"), 30);
    EXPECT_EQ(database.violations(), "");
}

/// The most jobs that a worker held at once, running or ready.
class MostHeld {
public:
    explicit MostHeld(Recorder& recorder) : recorder_{recorder} {}
    void handler_begins() {
        const std::size_t held = recorder_.count("claimed") - returned_;
        for (std::size_t seen = most_; held > seen && !most_.compare_exchange_weak(seen, held);) {
        }
    }
    void handler_returns() { ++returned_; }
    std::size_t value() const { return most_; }

private:
    Recorder& recorder_;
    std::atomic<std::size_t> returned_{0};
    std::atomic<std::size_t> most_{0};
};

TEST_F(WorkerQueue, AWorkerThatIsKnownToBeSlowHoldsNoMoreThanItCanStartSoon) {
    database.enqueue_many("q", "t", 40);
    MostHeld most{*recorder};
    Worker worker{database.options(), {.queues = {"q"}, .concurrency = 2, .lease = 5s, .observer = recorder}};
    worker.on("t", [&](JobContext&) {
        most.handler_begins();
        std::this_thread::sleep_for(100ms);
        most.handler_returns();
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return recorder->count("completed") == 40; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    // Each takes 100 ms or more: two handlers start ten of them within a tenth of the lease. Two more run.
    EXPECT_LE(most.value(), 12U);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerQueue, ClaimsAreNoLargerThanTheBatch) {
    database.enqueue_many("q", "t", 100);
    std::size_t largest = 0;
    Worker worker{database.options(), {.queues = {"q"}, .batch = 7}};
    worker.on("t", done);
    while (const std::size_t ran_now = worker.run_once()) {
        largest = std::max(largest, ran_now);
    }
    EXPECT_EQ(largest, 7U);
    EXPECT_EQ(database.count("completed"), 100);
}

TEST_F(WorkerQueue, LargePayloadsAreNotAllHeldAtOnce) {
    const std::string payload(std::size_t{5} << 20U, 'x');
    for (int i = 0; i < 20; ++i) {
        database.enqueue("q", "large", payload);
    }
    database.look().run("UPDATE commitq_jobs SET state='blocked'");  // not yet
    MostHeld most{*recorder};
    Worker worker{database.options(), {.queues = {"q"}, .concurrency = 1, .observer = recorder}};
    worker.on("quick", [&](JobContext&) {
        most.handler_returns();
        return Outcome::done();
    });
    worker.on("large", [&](JobContext& job) {
        EXPECT_EQ(job.payload().size(), payload.size());
        most.handler_begins();
        std::this_thread::sleep_for(20ms);  // time for the next claim
        most.handler_returns();
        return Outcome::done();
    });
    worker.start();
    database.enqueue("q", "quick");
    EXPECT_TRUE(eventually([&] { return recorder->count("completed") == 1; }));
    database.look().run("UPDATE commitq_jobs SET state='pending' WHERE state='blocked'");
    EXPECT_TRUE(eventually([&] { return recorder->count("completed") == 21; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    // Six may be ready (32 MiB) when a claim takes three more (16 MiB), and one runs.
    EXPECT_LE(most.value(), 10U);
    EXPECT_EQ(database.violations(), "");
}

// ----------------------------------------------------------------------------------------------------------------- types

TEST_F(WorkerQueue, C24_AnUnknownType_IsLeftToThoseWhoKnowItAndUsesNoAttempt) {
    std::vector<JobId> unknown;
    for (int i = 0; i < 20; ++i) {
        unknown.push_back(database.enqueue("q", i % 2 == 0 ? "new.type" : "T", "{}", {.priority = i % 3}));
    }
    database.enqueue_many("q", "t", 20);
    const auto old_version = one_by_one({"q"});
    run_until(*old_version, 20);
    for (const JobId id : unknown) {
        EXPECT_EQ(database.job(id, "state"), "pending");
        EXPECT_EQ(database.job(id, "attempt"), "0");
        EXPECT_EQ(recorder->story(id), "");
    }
    Worker new_version{database.options(), {.queues = {"q"}}};
    new_version.on("new.type", [](JobContext& job) {
        EXPECT_EQ(job.attempt(), 1);
        return Outcome::done();
    });
    new_version.on("T", done);
    EXPECT_EQ(testing::drain(new_version), 20U);
    EXPECT_EQ(database.count("completed"), 40);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerQueue, TheJobComesToTheHandlerAsItWasEnqueued) {
    std::string bytes;
    for (int i = 0; i < 256; ++i) {
        bytes += static_cast<char>(i);
    }
    const Headers headers{{"traceparent", "00-abc"}, {"x", "价"}};
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{256}, std::size_t{1'024}, std::size_t{1'025}, std::size_t{300'000}}) {
        std::string payload;
        while (payload.size() < size) {
            payload += bytes;
        }
        payload.resize(size);
        const JobId id = database.enqueue("q", "t", payload, {.priority = 3, .max_attempts = 4, .headers = headers});
        Worker worker{database.options(), {.queues = {"q"}}};
        worker.on("t", [&](JobContext& job) {
            EXPECT_EQ(job.id(), id);
            EXPECT_EQ(job.queue(), "q");
            EXPECT_EQ(job.type(), "t");
            EXPECT_TRUE(job.payload() == payload);
            EXPECT_EQ(job.headers(), headers);
            EXPECT_EQ(job.priority(), 3);
            EXPECT_EQ(job.attempt(), 1);
            EXPECT_EQ(job.max_attempts(), 4);
            EXPECT_EQ(job.stop_reason(), StopReason::none);
            EXPECT_FALSE(job.stop_token().stop_requested());
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(job.created_at().time_since_epoch());
            EXPECT_EQ(std::to_string(seconds.count()),
                      database.job(id, "TIMESTAMPDIFF(SECOND,'1970-01-01',created_at)"));
            return Outcome::done();
        });
        EXPECT_EQ(worker.run_once(), 1U);
    }
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
