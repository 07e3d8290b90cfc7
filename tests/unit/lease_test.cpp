#include "core/lease.h"

#include <gtest/gtest.h>

namespace commitq::core {
namespace {

using namespace std::chrono_literals;

constexpr Clock::time_point kStart{1h};

TEST(LeaseClock, CountsFromWhenTheStatementWasSent) {
    EXPECT_EQ(LeaseClock{30s}.deadline(kStart), kStart + 30s);
    EXPECT_EQ(LeaseClock{1500ms}.deadline(kStart), kStart + 1500ms);
}

TEST(LeaseClock, IsOverAtItsDeadline) {
    LeaseClock lease{30s};
    lease.renewed(kStart);
    EXPECT_FALSE(lease.has_passed(kStart));
    EXPECT_FALSE(lease.has_passed(kStart + 30s - 1ns));
    EXPECT_TRUE(lease.has_passed(kStart + 30s));
    EXPECT_TRUE(lease.has_passed(kStart + 24h));
}

TEST(LeaseClock, IsOverBeforeAnyClaim) { EXPECT_TRUE(LeaseClock{30s}.has_passed(Clock::time_point::min())); }

TEST(LeaseClock, IsRenewedAndNeverShortened) {
    LeaseClock lease{30s};
    lease.renewed(kStart);
    lease.renewed(kStart + 10s);
    EXPECT_FALSE(lease.has_passed(kStart + 39s));
    EXPECT_TRUE(lease.has_passed(kStart + 40s));
    lease.renewed(kStart + 5s);  // an older renewal, heard of late
    EXPECT_FALSE(lease.has_passed(kStart + 39s));
}

// The server's lease starts when the statement gets there, so ours is over first, however long the way and the reply
// take.
TEST(LeaseClock, EndsBeforeTheServersLease) {
    LeaseClock lease{30s};
    for (const auto way : {0ms, 1ms, 5'000ms, 29'000ms}) {
        const auto server_deadline = kStart + way + 30s;
        EXPECT_LE(lease.deadline(kStart), server_deadline);
    }
}

}  // namespace
}  // namespace commitq::core
