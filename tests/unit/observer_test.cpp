#include <commitq/observer.h>

#include <gtest/gtest.h>

namespace commitq {
namespace {

struct Counting : Observer {
    int completed = 0;
    void on_completed(const JobEvent& /*event*/) noexcept override { ++completed; }
};

TEST(Observer, NeedsOnlyTheHooksThatItsUserWants) {
    Counting counting;
    Observer& observer = counting;
    const JobEvent event{.id = 1, .queue = "orders", .type = "order.created", .attempt = 1};
    observer.on_claimed(event);
    observer.on_started(event);
    observer.on_completed(event);
    observer.on_retried(event);
    observer.on_snoozed(event);
    observer.on_dead(event);
    observer.on_cancelled(event);
    observer.on_released(event);
    observer.on_lease_lost(event);
    observer.on_reaped(1, 2);
    observer.on_error("claim", Error{{}});
    EXPECT_EQ(counting.completed, 1);
}

}  // namespace
}  // namespace commitq
