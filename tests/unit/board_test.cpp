// The board by itself: no server, no threads but where one has to wait for another.
#include <worker/board.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

namespace commitq::worker {
namespace {

using core::Clock;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using RunPtr = std::shared_ptr<Run>;

constexpr auto kLong = 1h;  // no deadline comes near in a test
constexpr auto kHang = 60s;

RunPtr make_run(JobId id, int attempt = 1, std::chrono::milliseconds timeout = 0ms) {
    auto registered = std::make_shared<const Registered>(
        Registered{.handler = {}, .retry = RetryPolicy{}, .max_attempts = 20, .timeout = timeout});
    store::ClaimedJob job;
    job.id = id;
    job.attempt = attempt;
    return std::make_shared<Run>(std::move(job), std::move(registered), nullptr);
}

std::vector<JobId> ids_of(const std::vector<RunPtr>& runs) {
    std::vector<JobId> ids;
    for (const RunPtr& run : runs) {
        ids.push_back(run->job.id);
    }
    return ids;
}

std::vector<JobId> ids_of(const std::vector<Finished>& results) {
    std::vector<JobId> ids;
    for (const Finished& result : results) {
        ids.push_back(result.run->job.id);
    }
    return ids;
}

class BoardTest : public ::testing::Test {
protected:
    /// Claimed jobs with these ids, ready, with a long lease.
    std::vector<RunPtr> add(Board& board, std::initializer_list<JobId> ids, Clock::duration lease = kLong) {
        std::vector<RunPtr> runs;
        for (const JobId id : ids) {
            runs.push_back(make_run(id));
        }
        board.add(runs, Clock::now() + lease);
        return runs;
    }

    /// Runs one job through to its result.
    static void finish_one(Board& board, Outcome outcome = Outcome::done()) {
        RunPtr run = board.take_now();
        ASSERT_NE(run, nullptr);
        board.finished({.run = std::move(run), .outcome = std::move(outcome)});
    }

    /// One job from claim to settled, so that the board knows how long handlers take: next to no time.
    static void run_a_quick_one(Board& board) {
        const RunPtr run = make_run(999'999);
        board.add({run}, Clock::now() + kLong);
        finish_one(board);
        board.collect(1, 0s);
        board.settle(run);
    }

    /// What `wait_wanted` returns once it returns; it waits on a thread of its own.
    static std::future<int> wanted_later(Board& board) {
        return std::async(std::launch::async, [&board] { return board.wait_wanted(); });
    }

    static std::vector<RunPtr> lost(Board& board, std::initializer_list<RunPtr> runs) {
        return board.lost(std::vector<RunPtr>{runs});
    }

    static constexpr BoardLimits kLimits{.concurrency = 4, .batch = 100, .prefetch = 10, .lease = 30s};
};

// ------------------------------------------------------------------------------------------------ how many to claim

TEST_F(BoardTest, WantsOnlyWhatCanStartWhileHandlerTimesAreUnknown) {
    Board board{kLimits};
    EXPECT_EQ(board.wait_wanted(), 4);
    add(board, {1});
    EXPECT_EQ(board.wait_wanted(), 3);
}

TEST_F(BoardTest, PrefetchesOnceHandlersAreKnownToBeQuick) {
    Board board{kLimits};
    run_a_quick_one(board);
    EXPECT_EQ(board.wait_wanted(), 14);
}

TEST_F(BoardTest, WithoutPrefetchWantsOnlyWhatCanStart) {
    Board board{{.concurrency = 4, .batch = 100, .prefetch = 0, .lease = 30s}};
    run_a_quick_one(board);
    EXPECT_EQ(board.wait_wanted(), 4);
}

TEST_F(BoardTest, WantsABatchAtMost) {
    Board board{{.concurrency = 4, .batch = 3, .prefetch = 10, .lease = 30s}};
    run_a_quick_one(board);
    EXPECT_EQ(board.wait_wanted(), 3);
}

TEST_F(BoardTest, SlowHandlersHoldNothingReady) {
    Board board{{.concurrency = 4, .batch = 100, .prefetch = 10, .lease = 1ms}};
    const RunPtr run = make_run(1);
    board.add({run}, Clock::now() + kLong);
    RunPtr taken = board.take_now();
    std::this_thread::sleep_for(5ms);  // longer than a tenth of the lease, shared by four
    board.finished({.run = std::move(taken), .outcome = Outcome::done()});
    EXPECT_EQ(board.wait_wanted(), 4);
}

TEST_F(BoardTest, PrefetchesNothingMoreAboveSoManyBytes) {
    Board board{{.concurrency = 1, .batch = 100, .prefetch = 100, .lease = 30s}};
    run_a_quick_one(board);
    EXPECT_GT(board.wait_wanted(), 50);
    std::vector<RunPtr> runs;
    for (JobId id = 1; id <= 10; ++id) {
        runs.push_back(make_run(id));
        runs.back()->job.payload.resize(std::size_t{4} << 20U);
    }
    board.add(runs, Clock::now() + kLong);
    auto wanted = wanted_later(board);
    for (int i = 0; i < 2; ++i) {
        finish_one(board);  // 32 MiB are ready: no more than that is allowed
    }
    ASSERT_EQ(wanted.wait_for(kHang), std::future_status::ready);
    EXPECT_GT(wanted.get(), 50);
}

TEST_F(BoardTest, TakesOneLargeJobForEachIdleHandlerAllTheSame) {
    Board board{{.concurrency = 3, .batch = 100, .prefetch = 100, .lease = 30s}};
    const RunPtr run = make_run(1);
    run->job.payload.resize(std::size_t{33} << 20U);
    board.add({run}, Clock::now() + kLong);
    EXPECT_EQ(board.wait_wanted(), 2);
}

TEST_F(BoardTest, WaitsForRoomThatIsWorthAClaimWhileNoHandlerIsIdle) {
    Board board{{.concurrency = 1, .batch = 100, .prefetch = 10, .lease = 30s}};
    run_a_quick_one(board);
    add(board, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    auto wanted = wanted_later(board);
    // One runs, ten are ready: no room. As each is done, there is room for one more; 5 is half of what it may hold.
    for (int i = 0; i < 5; ++i) {
        finish_one(board);
    }
    const RunPtr running = board.take_now();
    ASSERT_EQ(wanted.wait_for(kHang), std::future_status::ready);
    EXPECT_GE(wanted.get(), 5);
}

TEST_F(BoardTest, ClaimsNothingMoreWhileTooManyResultsAreUnwrittenAndGoesOnWhenTheyAreWritten) {
    Board board{{.concurrency = 1, .batch = 1'000, .prefetch = 0, .lease = 30s}};
    std::vector<RunPtr> runs;
    for (JobId id = 1; id <= 5'001; ++id) {
        runs.push_back(make_run(id));
    }
    board.add(runs, Clock::now() + kLong);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        finish_one(board);
    }
    auto wanted = wanted_later(board);
    EXPECT_NE(wanted.wait_for(20ms), std::future_status::ready);
    // All handlers are idle by now: the completer alone can make the claimer go on.
    EXPECT_EQ(board.collect(500, 0s).size(), 500U);
    ASSERT_EQ(wanted.wait_for(kHang), std::future_status::ready);
    EXPECT_EQ(wanted.get(), 1);
}

TEST_F(BoardTest, StoppingWakesTheClaimerAndWantsNothing) {
    Board board{{.concurrency = 1, .batch = 1, .prefetch = 0, .lease = 30s}};
    add(board, {1});
    auto wanted = wanted_later(board);
    board.stop_claiming();
    EXPECT_EQ(wanted.get(), 0);
    EXPECT_TRUE(board.stopping());
    EXPECT_EQ(board.wait_wanted(), 0);
    EXPECT_EQ(board.take(), nullptr) << "what is ready is not started any more";
}

TEST_F(BoardTest, StoppingWakesHandlersThatWait) {
    Board board{kLimits};
    auto taken = std::async(std::launch::async, [&] { return board.take(); });
    board.stop_claiming();
    EXPECT_EQ(taken.get(), nullptr);
}

TEST_F(BoardTest, AWakeBeforeTheWaitIsNotForgotten) {
    Board board{kLimits};
    board.wake();
    const auto began = Clock::now();
    EXPECT_TRUE(board.wait_idle(Clock::now() + kHang));
    EXPECT_LT(Clock::now() - began, kHang);
    EXPECT_FALSE(board.wait_idle(Clock::now())) << "used up: only the time ends this one";
}

TEST_F(BoardTest, WakeAndStopEndAnIdleWait) {
    for (const bool stop : {false, true}) {
        Board board{kLimits};
        auto waiting = std::async(std::launch::async, [&] { board.wait_idle(Clock::now() + kHang); });
        stop ? board.stop_claiming() : board.wake();
        EXPECT_EQ(waiting.wait_for(kHang / 2), std::future_status::ready);
    }
}

// -------------------------------------------------------------------------------------------------- ready and running

TEST_F(BoardTest, StartsJobsInTheOrderOfTheirClaims) {
    Board board{kLimits};
    add(board, {3, 1});
    add(board, {2});
    EXPECT_EQ(board.take()->job.id, 3U);
    EXPECT_EQ(board.take()->job.id, 1U);
    EXPECT_EQ(board.take_now()->job.id, 2U);
    EXPECT_EQ(board.take_now(), nullptr);
}

TEST_F(BoardTest, TakeWaitsForAJob) {
    Board board{kLimits};
    auto taken = std::async(std::launch::async, [&] { return board.take(); });
    add(board, {7});
    ASSERT_EQ(taken.wait_for(kHang), std::future_status::ready);
    EXPECT_EQ(taken.get()->job.id, 7U);
}

TEST_F(BoardTest, AJobWhoseDeadlineHasPassedIsNotStarted) {
    Board board{kLimits};
    const auto runs = add(board, {1}, -1ms);
    add(board, {2});
    EXPECT_EQ(board.take_now()->job.id, 2U);
    EXPECT_EQ(board.take_now(), nullptr);
    EXPECT_THAT(ids_of(board.watch(Clock::now())), ElementsAre(1));
    EXPECT_THAT(ids_of(board.renewable()), ElementsAre(2));
    EXPECT_EQ(board.held(), 1U);
    EXPECT_EQ(runs[0]->reason, StopReason::lease_lost);
}

// A process that was frozen for longer than its lease, while nobody reaped: a handler's thread passed the job over, and then
// a renewal went through. The job is this worker's for another lease, so somebody has to run it.
TEST_F(BoardTest, AJobPassedOverForItsDeadlineRunsWhenItsLeaseIsRenewedAfterAll) {
    Board board{kLimits};
    const auto runs = add(board, {1}, -1ms);
    EXPECT_EQ(board.take_now(), nullptr);
    auto taken = std::async(std::launch::async, [&] { return board.take(); });
    board.renewed(runs, Clock::now() + kLong);
    ASSERT_EQ(taken.wait_for(kHang), std::future_status::ready);
    EXPECT_EQ(taken.get(), runs[0]);
    EXPECT_THAT(board.watch(Clock::now()), IsEmpty());
}

TEST_F(BoardTest, WhatIsReadyCanBeTakenBackToReleaseIt) {
    Board board{kLimits};
    const auto runs = add(board, {1, 2, 3});
    const RunPtr running = board.take();
    board.stop_claiming();
    EXPECT_THAT(ids_of(board.take_ready()), ElementsAre(2, 3));
    EXPECT_THAT(board.take_ready(), IsEmpty());
    EXPECT_EQ(board.held(), 3U) << "renewed until they are released";
    EXPECT_TRUE(board.settle(runs[1]));
    EXPECT_TRUE(board.settle(runs[2]));
    EXPECT_EQ(board.held(), 1U);
}

// ------------------------------------------------------------------------------------------------------------ results

TEST_F(BoardTest, ResultsAreCollectedAtOnceWhenNothingElseRuns) {
    Board board{kLimits};
    add(board, {1});
    finish_one(board);
    EXPECT_THAT(ids_of(board.collect(500, kHang)), ElementsAre(1));
}

TEST_F(BoardTest, ResultsWaitForOthersThatRun) {
    Board board{kLimits};
    add(board, {1, 2});
    const RunPtr other = board.take();
    finish_one(board);
    auto collected = std::async(std::launch::async, [&] { return board.collect(500, kHang); });
    board.finished({.run = other, .outcome = Outcome::done()});
    ASSERT_EQ(collected.wait_for(kHang / 2), std::future_status::ready);
    EXPECT_THAT(ids_of(collected.get()), ElementsAre(2, 1));
}

TEST_F(BoardTest, ResultsWaitNoLongerThanTheLinger) {
    Board board{kLimits};
    add(board, {1, 2});
    const RunPtr other = board.take();
    finish_one(board);
    EXPECT_THAT(ids_of(board.collect(500, 1ms)), ElementsAre(2)) << "while job 1 still runs";
}

TEST_F(BoardTest, CollectsAtMostSoMany) {
    Board board{kLimits};
    add(board, {1, 2, 3});
    for (int i = 0; i < 3; ++i) {
        finish_one(board);
    }
    EXPECT_THAT(ids_of(board.collect(2, kHang)), ElementsAre(1, 2));
    EXPECT_THAT(ids_of(board.collect(2, kHang)), ElementsAre(3));
}

TEST_F(BoardTest, ClosingGivesWhatIsThereAndThenNothing) {
    Board board{kLimits};
    add(board, {1, 2});
    const RunPtr still_running = board.take();
    finish_one(board);
    board.close_completer();
    EXPECT_TRUE(board.completer_closed());
    EXPECT_THAT(ids_of(board.collect(500, kHang)), ElementsAre(2));
    EXPECT_THAT(board.collect(500, kHang), IsEmpty());
    EXPECT_FALSE(board.wait_closing(Clock::now() + kHang));
}

TEST_F(BoardTest, ClosingEndsAWaitForResults) {
    Board board{kLimits};
    auto collected = std::async(std::launch::async, [&] { return board.collect(500, kHang); });
    auto waited = std::async(std::launch::async, [&] { return board.wait_closing(Clock::now() + kHang); });
    board.close_completer();
    EXPECT_THAT(collected.get(), IsEmpty());
    EXPECT_FALSE(waited.get());
}

TEST_F(BoardTest, AResultPutBackComesAgainAfterItsDelayAndIsHeldUntilThen) {
    Board board{kLimits};
    const auto runs = add(board, {1});
    finish_one(board);
    auto first = board.collect(500, 0s);
    const auto until = Clock::now() + 20ms;
    board.put_back(std::move(first.front()), 20ms);
    EXPECT_FALSE(board.wait_drained(Clock::now()));
    EXPECT_THAT(board.renewable(), ElementsAre(runs[0]));
    EXPECT_THAT(ids_of(board.collect(500, 0s)), ElementsAre(1));
    EXPECT_GE(Clock::now(), until);
}

TEST_F(BoardTest, AResultPutBackDoesNotKeepOthersWaiting) {
    Board board{kLimits};
    add(board, {1, 2});
    finish_one(board);
    auto first = board.collect(500, 0s);
    board.put_back(std::move(first.front()), kHang);
    finish_one(board);
    EXPECT_THAT(ids_of(board.collect(500, 0s)), ElementsAre(2));
}

TEST_F(BoardTest, IsDrainedWhenTheLastOneIsSettled) {
    Board board{kLimits};
    EXPECT_TRUE(board.wait_drained(Clock::now()));
    const auto runs = add(board, {1, 2});
    finish_one(board);
    finish_one(board);
    EXPECT_FALSE(board.wait_drained(Clock::now()));
    auto drained = std::async(std::launch::async, [&] { return board.wait_drained(Clock::now() + kHang); });
    EXPECT_TRUE(board.settle(runs[0]));
    EXPECT_TRUE(board.settle(runs[1]));
    EXPECT_FALSE(board.settle(runs[1])) << "settled before";
    EXPECT_TRUE(drained.get());
}

TEST_F(BoardTest, ASnoozedJobIsNotClaimedAgainBeforeItsResultIsSettled) {
    Board board{kLimits};
    const auto runs = add(board, {1, 2});
    finish_one(board, Outcome::snooze(0s));
    finish_one(board, Outcome::retry("busy"));
    EXPECT_THAT(board.not_to_claim(), ElementsAre(1))
        << "its attempt number comes again, so the fence could be mistaken";
    board.settle(runs[0]);
    EXPECT_THAT(board.not_to_claim(), IsEmpty());
}

// ------------------------------------------------------------------------------------------------------- lost leases

TEST_F(BoardTest, AReadyJobThatIsLostIsForgotten) {
    Board board{kLimits};
    const auto runs = add(board, {1, 2});
    EXPECT_THAT(ids_of(lost(board, {runs[0]})), ElementsAre(1));
    EXPECT_EQ(board.take_now()->job.id, 2U);
    EXPECT_EQ(board.take_now(), nullptr);
    EXPECT_EQ(board.held(), 1U);
    EXPECT_THAT(lost(board, {runs[0]}), IsEmpty()) << "told once";
}

TEST_F(BoardTest, ARunningJobThatIsLostIsToldAndStaysKnown) {
    Board board{kLimits};
    add(board, {1});
    const RunPtr run = board.take();
    EXPECT_FALSE(run->stop.stop_requested());
    EXPECT_THAT(ids_of(lost(board, {run})), ElementsAre(1));
    EXPECT_TRUE(run->stop.stop_requested());
    EXPECT_EQ(run->reason, StopReason::lease_lost);
    EXPECT_THAT(board.not_to_claim(), ElementsAre(1)) << "its handler still runs here";
    EXPECT_THAT(board.renewable(), IsEmpty()) << "the server has said that it isn't ours";
    EXPECT_THAT(lost(board, {run}), IsEmpty()) << "told once";
    board.finished({.run = run, .outcome = Outcome::done()});
    EXPECT_THAT(ids_of(board.collect(500, 0s)), ElementsAre(1)) << "the fence decides";
    EXPECT_FALSE(board.settle(run)) << "it was thought to be lost";
    EXPECT_EQ(board.held(), 0U);
}

TEST_F(BoardTest, AJobWhoseResultIsBeingWrittenIsNotCalledLost) {
    Board board{kLimits};
    const auto runs = add(board, {1});
    finish_one(board);
    EXPECT_THAT(lost(board, {runs[0]}), IsEmpty()) << "no longer running: it has just been written";
    EXPECT_THAT(board.watch(Clock::now() + 2 * kLong), IsEmpty());
    EXPECT_TRUE(board.settle(runs[0]));
}

TEST_F(BoardTest, AJobSettledMeanwhileIsNotCalledLost) {
    Board board{kLimits};
    const auto runs = add(board, {1});
    finish_one(board);
    board.settle(runs[0]);
    EXPECT_THAT(lost(board, {runs[0]}), IsEmpty());
}

TEST_F(BoardTest, ARunningJobWhoseDeadlinePassesIsStillRenewedSinceItMayBeOurs) {
    Board board{kLimits};
    add(board, {1}, 10ms);
    const RunPtr run = board.take();
    ASSERT_NE(run, nullptr);
    EXPECT_THAT(board.watch(Clock::now() - 1s), IsEmpty());
    EXPECT_THAT(ids_of(board.watch(Clock::now() + 1s)), ElementsAre(1));
    EXPECT_EQ(run->reason, StopReason::lease_lost);
    EXPECT_THAT(board.renewable(), ElementsAre(run));
    EXPECT_THAT(board.watch(Clock::now() + 1s), IsEmpty()) << "told once";
}

TEST_F(BoardTest, ARenewalMovesTheDeadlineOnAndNeverBack) {
    Board board{kLimits};
    const auto runs = add(board, {1}, 10s);
    const auto now = Clock::now();
    board.renewed(runs, now + 100s);
    board.renewed(runs, now + 50s);
    EXPECT_THAT(board.watch(now + 99s), IsEmpty());
    EXPECT_THAT(ids_of(board.watch(now + 100s)), ElementsAre(1));
}

TEST_F(BoardTest, ARenewalOfAJobThatIsGoneChangesNothing) {
    Board board{kLimits};
    const auto runs = add(board, {1});
    finish_one(board);
    board.settle(runs[0]);
    board.renewed(runs, Clock::now() + kLong);
    EXPECT_EQ(board.held(), 0U);
}

TEST_F(BoardTest, LosingTheLastReadyJobDrainsTheBoard) {
    Board board{kLimits};
    add(board, {1}, -1ms);
    auto drained = std::async(std::launch::async, [&] { return board.wait_drained(Clock::now() + kHang); });
    board.watch(Clock::now());
    EXPECT_TRUE(drained.get());
}

// A worker that was frozen for longer than its lease: all that it had ready is lost, its handlers are idle, and nobody but
// the claimer can go on.
TEST_F(BoardTest, LosingWhatIsReadyMakesRoomForAClaim) {
    Board board{{.concurrency = 1, .batch = 100, .prefetch = 0, .lease = 30s}};
    for (const bool by_server : {false, true}) {
        const auto runs = add(board, {1}, by_server ? kLong : -1ms);
        auto wanted = wanted_later(board);
        EXPECT_NE(wanted.wait_for(20ms), std::future_status::ready);
        EXPECT_EQ((by_server ? board.lost(runs) : board.watch(Clock::now())), runs);
        ASSERT_EQ(wanted.wait_for(kHang), std::future_status::ready);
        EXPECT_EQ(wanted.get(), 1);
    }
}

// The server gave the job to this worker again, so the run before it is over, whatever it still does.
TEST_F(BoardTest, AJobClaimedAgainBesideItsOlderRunBelongsToTheNewerOne) {
    Board board{kLimits};
    add(board, {1});
    const RunPtr older = board.take();
    const RunPtr newer = make_run(1, 2);
    EXPECT_THAT(board.add({newer}, Clock::now() + kLong), ElementsAre(older));
    EXPECT_EQ(older->reason, StopReason::lease_lost);
    board.finished({.run = older, .outcome = Outcome::done()});
    EXPECT_FALSE(board.settle(older));
    EXPECT_EQ(board.held(), 1U);
    EXPECT_EQ(board.take_now(), newer);
    board.finished({.run = newer, .outcome = Outcome::done()});
    const auto results = board.collect(500, 0s);
    ASSERT_EQ(results.size(), 1U) << "nobody writes the older one's result";
    EXPECT_EQ(results[0].run, newer);
    EXPECT_TRUE(board.settle(newer));
}

TEST_F(BoardTest, AnOlderRunThatWasReadyIsNotStartedBesideTheNewerOne) {
    Board board{kLimits};
    add(board, {1});
    const RunPtr newer = make_run(1, 2);
    board.add({newer}, Clock::now() + kLong);
    EXPECT_EQ(board.take_now(), newer);
    EXPECT_EQ(board.take_now(), nullptr);
}

// A renewal saw the job between its retry and the next claim of this same worker, when it was nobody's. That says nothing
// about the newer run.
TEST_F(BoardTest, ARenewalThatMissedTheOlderRunDoesNotTakeTheNewerOneAway) {
    Board board{kLimits};
    const auto runs = add(board, {1});
    finish_one(board, Outcome::retry("again"));
    const std::vector<RunPtr> asked_for = board.renewable();
    EXPECT_THAT(asked_for, ElementsAre(runs[0]));
    const RunPtr newer = make_run(1, 2);
    // The retry was written, and the job claimed again.
    EXPECT_THAT(board.add({newer}, Clock::now() + kLong), IsEmpty()) << "that one had ended";
    EXPECT_THAT(board.lost(asked_for), IsEmpty());
    EXPECT_FALSE(newer->stop.stop_requested());
    EXPECT_EQ(board.take_now(), newer);
    EXPECT_THAT(board.renewable(), ElementsAre(newer));
}

// ------------------------------------------------------------------------------------------------- timeouts and stop

TEST_F(BoardTest, AHandlersTimeoutFiresItsStopTokenAndNothingElse) {
    Board board{kLimits};
    const RunPtr run = make_run(1, 1, 50ms);
    board.add({run, make_run(2)}, Clock::now() + kLong);
    board.take();
    const RunPtr without = board.take();
    const auto started = Clock::now();
    EXPECT_THAT(board.watch(started - 1s), IsEmpty());
    EXPECT_FALSE(run->stop.stop_requested());
    EXPECT_THAT(board.watch(started + 50ms), IsEmpty());
    EXPECT_EQ(run->reason, StopReason::timeout);
    EXPECT_FALSE(without->stop.stop_requested());
    EXPECT_THAT(board.not_to_claim(), IsEmpty());
}

TEST_F(BoardTest, TheTimeoutDoesNotRunBeforeTheHandlerDoes) {
    Board board{kLimits};
    const RunPtr run = make_run(1, 1, 50ms);
    board.add({run}, Clock::now() + kLong);
    board.watch(Clock::now() + 1s);
    EXPECT_FALSE(run->stop.stop_requested());
}

TEST_F(BoardTest, StoppingTellsThoseThatRunAndTheFirstReasonStays) {
    Board board{kLimits};
    add(board, {1, 2, 3});
    const RunPtr first = board.take();
    const RunPtr second = board.take();
    first->request_stop(StopReason::timeout);
    board.stop_running();
    EXPECT_EQ(first->reason, StopReason::timeout);
    EXPECT_EQ(second->reason, StopReason::shutdown);
    EXPECT_TRUE(second->stop.stop_requested());
}

TEST_F(BoardTest, HeartbeatAndWatchWaitUntilTheyAreClosed) {
    Board board{kLimits};
    EXPECT_TRUE(board.wait_heartbeat(Clock::now()));
    EXPECT_FALSE(board.closed());
    auto beating = std::async(std::launch::async, [&] { return board.wait_heartbeat(Clock::now() + kHang); });
    auto watching = std::async(std::launch::async, [&] { board.wait_watch(); });
    board.close_heartbeat();
    EXPECT_FALSE(beating.get());
    watching.get();
    EXPECT_TRUE(board.closed());
}

}  // namespace
}  // namespace commitq::worker
