#include <commitq/retry_policy.h>

#include "core/duration.h"
#include "core/random.h"
#include "thrown.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace commitq {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr int kLowest = std::numeric_limits<int>::min();
constexpr int kHighest = std::numeric_limits<int>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMiddle = 0.5;  // lands on the delay itself

TEST(RetryPolicy, ByDefaultDoublesFromTenSecondsToAnHour) {
    const RetryPolicy policy;
    const microseconds delays[] = {10s, 20s, 40s, 80s, 160s, 320s, 640s, 1280s, 2560s, 1h, 1h};
    int attempt = 0;
    for (const microseconds delay : delays) EXPECT_EQ(policy.delay(++attempt, kMiddle), delay) << attempt;
    EXPECT_EQ(policy.delay(1, 0.0), 9s);
    EXPECT_EQ(policy.max_attempts(), std::nullopt);
}

TEST(RetryPolicy, FixedIsAlwaysTheSame) {
    for (const microseconds delay : {microseconds{0}, microseconds{1}, microseconds{90s}, core::kMaxDelay}) {
        const RetryPolicy policy = RetryPolicy::fixed(delay);
        for (const int attempt : {kLowest, 0, 1, 2, 100, kHighest})
            for (const double random : {0.0, 0.3, 0.999}) EXPECT_EQ(policy.delay(attempt, random), delay);
    }
    for (const microseconds delay : {-1us, core::kMaxDelay + 1us, microseconds::min(), microseconds::max()})
        expect_invalid([&] { (void)RetryPolicy::fixed(delay); }, "RetryPolicy::fixed", "delay");
}

TEST(RetryPolicy, ExponentialGrowsByItsFactorUpToItsCap) {
    struct Case {
        microseconds base;
        double factor;
        microseconds cap;
        int attempt;
        microseconds delay;
    };
    const Case cases[] = {
        {1s, 2.0, 1h, 1, 1s},
        {1s, 2.0, 1h, 12, 2048s},
        {1s, 2.0, 1h, 13, 1h},
        {1s, 1.0, 1h, 1000, 1s},
        {1s, 1.5, 1h, 3, 2250ms},
        {1s, 100.0, 1h, 2, 100s},
        {1min, 2.0, 1min, 5, 1min},
        {1us, 1.0, 1us, 1, 1us},
        {1us, 2.0, core::kMaxDelay, 40, microseconds{std::int64_t{1} << 39}},
        {1us, 2.0, core::kMaxDelay, 10'000, core::kMaxDelay},  // 2^9999 is infinity
        {1us, 100.0, core::kMaxDelay, kHighest, core::kMaxDelay},
        {core::kMaxDelay, 100.0, core::kMaxDelay, kHighest, core::kMaxDelay},
        {1s, 2.0, 1h, 0, 1s},  // attempts count from 1
        {1s, 2.0, 1h, -5, 1s},
        {1s, 2.0, 1h, kLowest, 1s},
    };
    for (const auto& [base, factor, cap, attempt, delay] : cases) {
        SCOPED_TRACE(attempt);
        EXPECT_EQ(RetryPolicy::exponential(base, factor, cap, 0.0).delay(attempt, 0.9), delay);
        EXPECT_EQ(RetryPolicy::exponential(base, factor, cap, 0.5).delay(attempt, kMiddle), delay);
    }
}

TEST(RetryPolicy, JitterSpreadsEvenlyAroundTheDelay) {
    const RetryPolicy policy = RetryPolicy::exponential(100s, 1.0, 1h, 0.2);
    EXPECT_EQ(policy.delay(1, 0.0), 80s);
    EXPECT_EQ(policy.delay(1, 0.25), 90s);
    EXPECT_EQ(policy.delay(1, 0.5), 100s);
    EXPECT_EQ(policy.delay(1, 0.75), 110s);
    core::Random random{28};
    microseconds total{0};
    for (int i = 0; i < 10'000; ++i) {
        const microseconds delay = policy.delay(1, random.uniform());
        ASSERT_GE(delay, 80s);
        ASSERT_LT(delay, 120s);
        total += delay;
    }
    EXPECT_NEAR(static_cast<double>((total / 10'000).count()), 100e6, 1e6);
}

TEST(RetryPolicy, FullJitterStaysWithinRange) {
    const RetryPolicy policy = RetryPolicy::exponential(10s, 2.0, core::kMaxDelay, 1.0);
    EXPECT_EQ(policy.delay(1, 0.0), 0s);
    for (const int attempt : {1, 10, 100, kHighest})
        for (const double random : {0.0, 0.5, 0.999999, 1.0, 2.0, -1.0, kInfinity, -kInfinity, kNaN}) {
            const microseconds delay = policy.delay(attempt, random);
            EXPECT_GE(delay, 0s);
            EXPECT_LE(delay, core::kMaxDelay);
        }
}

TEST(RetryPolicy, ExponentialRefusesWhatMakesNoSense) {
    struct Case {
        microseconds base;
        double factor;
        microseconds cap;
        double jitter;
        std::string named;
    };
    const Case cases[] = {
        {0s, 2.0, 1h, 0.1, "base"},
        {-1s, 2.0, 1h, 0.1, "base"},
        {microseconds::min(), 2.0, 1h, 0.1, "base"},
        {1s, 0.999, 1h, 0.1, "factor"},
        {1s, 100.001, 1h, 0.1, "factor"},
        {1s, 0.0, 1h, 0.1, "factor"},
        {1s, -2.0, 1h, 0.1, "factor"},
        {1s, kNaN, 1h, 0.1, "factor"},
        {1s, kInfinity, 1h, 0.1, "factor"},
        {1s, 2.0, 999ms, 0.1, "cap"},
        {1s, 2.0, core::kMaxDelay + 1us, 0.1, "cap"},
        {1s, 2.0, microseconds::max(), 0.1, "cap"},
        {1s, 2.0, 1h, -0.001, "jitter"},
        {1s, 2.0, 1h, 1.001, "jitter"},
        {1s, 2.0, 1h, kNaN, "jitter"},
    };
    for (const auto& c : cases)
        expect_invalid([&] { (void)RetryPolicy::exponential(c.base, c.factor, c.cap, c.jitter); },
                       "RetryPolicy::exponential", c.named);
}

TEST(RetryPolicy, OutboxIsTheClassicOfHandWrittenTables) {
    const RetryPolicy policy = RetryPolicy::outbox();
    const microseconds delays[] = {2min, 4min, 8min, 16min, 32min, 64min, 128min, 256min};
    int attempt = 0;
    for (const microseconds delay : delays) {
        ++attempt;
        for (const double random : {0.0, 0.999}) EXPECT_EQ(policy.delay(attempt, random), delay);
    }
    EXPECT_EQ(policy.max_attempts(), 8);
    EXPECT_EQ(policy.delay(kHighest, 0.0), core::kMaxDelay);
}

TEST(RetryPolicy, CustomIsTheUsersFunction) {
    const RetryPolicy policy = RetryPolicy::custom([](int attempt) { return attempt * 7s; });
    EXPECT_EQ(policy.delay(1, 0.9), 7s);
    EXPECT_EQ(policy.delay(3, 0.1), 21s);
    EXPECT_EQ(RetryPolicy::custom([](int) { return 0s; }).delay(1, 0.9), 0s);
    EXPECT_EQ(RetryPolicy::custom([](int) { return microseconds::max(); }).delay(1, 0.9), core::kMaxDelay);
    expect_invalid([] { (void)RetryPolicy::custom({}); }, "RetryPolicy::custom", "empty");
}

TEST(RetryPolicy, AFailingFunctionGivesTheDefaultDelay) {
    const RetryPolicy::Function failing[] = {
        [](int) -> microseconds { throw std::runtime_error{"no"}; },
        [](int) -> microseconds { throw 42; },
        [](int) { return -1us; },
        [](int) { return microseconds::min(); },
    };
    for (const auto& function : failing)
        for (const int attempt : {1, 3, 1000})
            EXPECT_EQ(RetryPolicy::custom(function).delay(attempt, 0.3), RetryPolicy{}.delay(attempt, 0.3));
}

}  // namespace
}  // namespace commitq
