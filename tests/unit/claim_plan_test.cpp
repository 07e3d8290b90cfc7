// Where a worker looks for its next jobs.
#include <worker/claim_plan.h>

#include <gtest/gtest.h>

namespace commitq::worker {
namespace {

using core::Clock;
using namespace std::chrono_literals;

const Clock::time_point kStart{1h};
constexpr auto kCheap = 1ms;

store::Due due(std::size_t queue, int priority, std::string at = "t1") {
    return {.queue = queue, .priority = priority, .available_at = std::move(at), .in = -1us};
}

store::Due due_in(std::size_t queue, int priority, std::chrono::microseconds in) {
    return {.queue = queue, .priority = priority, .available_at = "later", .in = in};
}

/// The next target as text: queue, priority, place.
std::string next(const ClaimPlan& plan) {
    const auto target = plan.next();
    return target ? std::to_string(target->queue) + "/" + std::to_string(target->priority) + "/" + target->from
                  : "none";
}

void looked(ClaimPlan& plan, std::initializer_list<store::Due> found, Clock::duration cost = kCheap) {
    plan.looked(std::vector<store::Due>{found}, kStart, cost);
}

/// A claim from the next target.
void claim(ClaimPlan& plan, const std::string& last, bool more) { plan.claimed(plan.next().value(), last, more); }

TEST(ClaimPlan, KnowsNothingBeforeTheFirstLook) {
    const ClaimPlan plan{2, QueueOrder::round_robin};
    EXPECT_EQ(next(plan), "none");
    EXPECT_TRUE(plan.should_look(kStart));
    EXPECT_TRUE(plan.may_look(kStart));
    EXPECT_FALSE(plan.next_due());
}

TEST(ClaimPlan, TakesTheBestPriorityFirstUntilItIsEmpty) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {due(0, 9), due(0, 0), due(0, 5)});
    EXPECT_EQ(next(plan), "0/0/t1");
    claim(plan, "t2", true);
    EXPECT_EQ(next(plan), "0/0/t2") << "there may be more behind the last one claimed";
    claim(plan, "t3", false);
    EXPECT_EQ(next(plan), "0/5/t1");
    claim(plan, "", false);
    EXPECT_EQ(next(plan), "0/9/t1");
    claim(plan, "t2", false);
    EXPECT_EQ(next(plan), "none");
}

/// Where an announced job is likely, as text.
std::string likely(const ClaimPlan& plan) {
    const auto target = plan.likely();
    return target ? std::to_string(target->queue) + "/" + std::to_string(target->priority) + "/" + target->from
                  : "none";
}

TEST(ClaimPlan, AnAnnouncedJobIsLikelyWhereTheLastOneWas) {
    ClaimPlan plan{2, QueueOrder::round_robin};
    EXPECT_EQ(likely(plan), "none");
    looked(plan, {due(1, 5)});
    EXPECT_EQ(likely(plan), "none") << "nothing was claimed yet";
    claim(plan, "t2", false);
    EXPECT_EQ(likely(plan), "1/5/t2");
    EXPECT_TRUE(plan.likely()->only_if_best);
    looked(plan, {});
    EXPECT_EQ(likely(plan), "1/5/t2") << "an idle worker remembers it";
}

TEST(ClaimPlan, OnlyALookCanTellWhereABetterPriorityOrQueueMayHaveJobs) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {due(0, 5), due_in(0, 3, 1h)});
    claim(plan, "t2", false);
    EXPECT_EQ(likely(plan), "none") << "the claim would find the scheduled job of priority 3, and take nothing";
    looked(plan, {due_in(0, 7, 1h)});
    EXPECT_EQ(likely(plan), "0/5/t2");

    ClaimPlan strict{2, QueueOrder::strict};
    looked(strict, {due(1, 5)});
    claim(strict, "t2", false);
    EXPECT_EQ(likely(strict), "none") << "the first queue comes first";
}

// While looks are slow, one after each wake would be too many, and the better priority must not wait for the next.
TEST(ClaimPlan, ABetterPriorityThatAClaimFoundIsNext) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {due(0, 5, "t5")});
    claim(plan, "t6", false);
    plan.found_better(plan.likely().value(), 3);
    plan.assume();
    EXPECT_EQ(next(plan), "0/3/1970-01-01 00:00:00.000000") << "nothing is known of it";
    EXPECT_EQ(likely(plan), "none") << "what is there may be scheduled for later: each wake would find it again";
    claim(plan, "t7", true);
    EXPECT_EQ(next(plan), "0/3/t7");
    claim(plan, "", false);
    EXPECT_EQ(next(plan), "0/5/t6");
    plan.found_better(plan.next().value(), 3);
    EXPECT_EQ(next(plan), "0/3/t7") << "the hint stays";
}

TEST(ClaimPlan, RoundRobinTakesABatchFromEachQueueInTurn) {
    ClaimPlan plan{3, QueueOrder::round_robin};
    looked(plan, {due(0, 5), due(1, 5), due(2, 5)});
    std::string order;
    for (int i = 0; i < 7; ++i) {
        order += std::to_string(plan.next()->queue);
        claim(plan, "t2", true);
    }
    EXPECT_EQ(order, "0120120");
}

TEST(ClaimPlan, RoundRobinDoesNotPutABetterPriorityOfAnotherQueueFirst) {
    ClaimPlan plan{2, QueueOrder::round_robin};
    looked(plan, {due(0, 9), due(1, 0)});
    EXPECT_EQ(next(plan), "0/9/t1");
    claim(plan, "t2", true);
    EXPECT_EQ(next(plan), "1/0/t1");
}

TEST(ClaimPlan, AnEmptyClaimDoesNotUseUpTheQueuesTurn) {
    ClaimPlan plan{2, QueueOrder::round_robin};
    looked(plan, {due(0, 3), due(0, 5), due(1, 5)});
    claim(plan, "", false);  // others had them all
    EXPECT_EQ(next(plan), "0/5/t1");
}

TEST(ClaimPlan, StrictTakesTheFirstQueueThatHasDueJobs) {
    ClaimPlan plan{3, QueueOrder::strict};
    looked(plan, {due(1, 9), due(2, 0)});
    EXPECT_EQ(next(plan), "1/9/t1");
    claim(plan, "t2", true);
    EXPECT_EQ(next(plan), "1/9/t2");
    claim(plan, "t3", false);
    EXPECT_EQ(next(plan), "2/0/t1");
}

TEST(ClaimPlan, TheHintMovesOnWithClaimsAndALookSetsItBackToTheTrueBeginning) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {due(0, 5, "t5")});
    claim(plan, "t7", true);
    EXPECT_EQ(next(plan), "0/5/t7");
    looked(plan, {due(0, 5, "t3")});  // a late commit
    EXPECT_EQ(next(plan), "0/5/t3");
}

TEST(ClaimPlan, ALookForgetsWhatIsNoLongerDue) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {due(0, 5), due(0, 7)});
    looked(plan, {due(0, 7)});
    EXPECT_EQ(next(plan), "0/7/t1");
    looked(plan, {});
    EXPECT_EQ(next(plan), "none");
}

TEST(ClaimPlan, AssumesJobsWhereThereWereSomeAndNowhereElse) {
    ClaimPlan plan{2, QueueOrder::strict};
    looked(plan, {due(0, 5, "t5"), due(1, 2, "t2"), due_in(1, 0, 1s)});
    claim(plan, "t6", false);
    claim(plan, "t3", false);
    EXPECT_EQ(next(plan), "none");
    plan.assume();
    EXPECT_EQ(next(plan), "0/5/t6");
    claim(plan, "", false);
    EXPECT_EQ(next(plan), "1/2/t3");
    claim(plan, "", false);
    EXPECT_EQ(next(plan), "none");
}

TEST(ClaimPlan, JobsThatAreNotDueAreNoTargetsAndTheEarliestIsRemembered) {
    ClaimPlan plan{2, QueueOrder::round_robin};
    looked(plan, {due_in(0, 5, 3s), due_in(1, 0, 2s), due_in(1, 1, 4s)});
    EXPECT_EQ(next(plan), "none");
    EXPECT_EQ(plan.next_due(), kStart + 2s);
    looked(plan, {due_in(0, 5, 3s), due(1, 1)});
    EXPECT_EQ(plan.next_due(), kStart + 3s);
    looked(plan, {});
    EXPECT_FALSE(plan.next_due());
}

TEST(ClaimPlan, ACheapLookIsAlwaysAllowedAndDoneTenTimesASecondWhileBusy) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {}, 2ms);
    EXPECT_TRUE(plan.may_look(kStart));
    EXPECT_FALSE(plan.should_look(kStart + 99ms));
    EXPECT_TRUE(plan.should_look(kStart + 100ms));
}

TEST(ClaimPlan, ALookWhileBusyTakesAFiftiethOfTheTimeAndIsDoneEverySecondAllTheSame) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {}, 5ms);
    EXPECT_TRUE(plan.may_look(kStart));
    EXPECT_FALSE(plan.should_look(kStart + 249ms));
    EXPECT_TRUE(plan.should_look(kStart + 250ms));
    looked(plan, {}, 30ms);
    EXPECT_FALSE(plan.should_look(kStart + 999ms));
    EXPECT_TRUE(plan.should_look(kStart + 1s));
}

TEST(ClaimPlan, AnExpensiveLookIsDoneWhenTwentyTimesItsCostHasPassed) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {}, 50ms);
    EXPECT_FALSE(plan.may_look(kStart + 999ms));
    EXPECT_FALSE(plan.should_look(kStart + 999ms));
    EXPECT_TRUE(plan.may_look(kStart + 1s));
    EXPECT_TRUE(plan.should_look(kStart + 1s));
    looked(plan, {}, 100ms);
    EXPECT_FALSE(plan.may_look(kStart + 1999ms));
    EXPECT_FALSE(plan.should_look(kStart + 1999ms));
    EXPECT_TRUE(plan.may_look(kStart + 2s));
    EXPECT_TRUE(plan.should_look(kStart + 2s));
}

// While looks are expensive, the time at which a job becomes due can come before the next look may: waiting for it would be
// no wait at all, in a loop.
TEST(ClaimPlan, TheNextDueJobIsNotWaitedForBeforeALookMayFindIt) {
    ClaimPlan plan{1, QueueOrder::round_robin};
    looked(plan, {due_in(0, 5, 100ms)}, 50ms);
    EXPECT_EQ(plan.next_due(), kStart + 1s);
    looked(plan, {due_in(0, 5, 3s)}, 50ms);
    EXPECT_EQ(plan.next_due(), kStart + 3s);
}

}  // namespace
}  // namespace commitq::worker
