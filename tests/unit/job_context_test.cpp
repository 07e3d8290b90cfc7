#include <commitq/job_context.h>

#include <gtest/gtest.h>

namespace commitq {
namespace {

TEST(StopReason, HasANameForEach) {
    EXPECT_EQ(to_string(StopReason::none), "none");
    EXPECT_EQ(to_string(StopReason::lease_lost), "lease_lost");
    EXPECT_EQ(to_string(StopReason::timeout), "timeout");
    EXPECT_EQ(to_string(StopReason::shutdown), "shutdown");
}

}  // namespace
}  // namespace commitq
