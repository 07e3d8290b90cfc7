#include "core/backoff.h"

#include "core/random.h"

#include <gtest/gtest.h>

#include <limits>

namespace commitq::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr double kAlmostOne = 1.0 - std::numeric_limits<double>::epsilon() / 2;

TEST(Backoff, DoublesUpToItsLongestWait) {
    Backoff backoff{20ms, 250ms};
    for (const microseconds wait : {20ms, 40ms, 80ms, 160ms, 250ms, 250ms, 250ms})
        EXPECT_EQ(backoff.next(kAlmostOne), wait);
}

TEST(Backoff, SpreadsEachWaitOverItsUpperHalf) {
    for (const double random : {0.0, 0.25, 0.5, 0.75}) {
        Backoff backoff{100ms, 400ms};
        for (const double wait : {100'000.0, 200'000.0, 400'000.0, 400'000.0})
            EXPECT_EQ(static_cast<double>(backoff.next(random).count()), wait * (0.5 + random / 2));
    }
}

TEST(Backoff, StartsAgainAfterSuccess) {
    Backoff backoff{1s, 60s};
    EXPECT_EQ(backoff.failures(), 0);
    for (int i = 0; i < 5; ++i) (void)backoff.next(0.5);
    EXPECT_EQ(backoff.failures(), 5);
    backoff.reset();
    EXPECT_EQ(backoff.failures(), 0);
    EXPECT_EQ(backoff.next(kAlmostOne), 1s);
    EXPECT_EQ(backoff.failures(), 1);
}

TEST(Backoff, StaysAtItsLongestWaitForEver) {
    Backoff backoff{1us, 24h};
    for (int i = 0; i < 100'000; ++i) {
        const microseconds wait = backoff.next(kAlmostOne);
        ASSERT_GT(wait, 0us);
        ASSERT_LE(wait, 24h);
    }
    EXPECT_EQ(backoff.next(0.0), 12h);
    EXPECT_EQ(backoff.failures(), 100'001);
}

TEST(Backoff, OfOneLengthIsJitteredOnly) {
    Backoff backoff{5s, 5s};
    EXPECT_EQ(backoff.next(0.0), 2500ms);
    EXPECT_EQ(backoff.next(kAlmostOne), 5s);
}

// The pure part of C40: loops that start together don't stay in step.
TEST(Backoff, TakesLoopsOutOfStep) {
    Random random{40};
    microseconds first{0};
    microseconds second{0};
    Backoff a{20ms, 250ms};
    Backoff b{20ms, 250ms};
    int together = 0;
    for (int i = 0; i < 100; ++i) {
        first += a.next(random.uniform());
        second += b.next(random.uniform());
        if (std::chrono::abs(first - second) < 1ms) ++together;
    }
    EXPECT_LT(together, 10);
}

TEST(Backoff, KeepsItsRangeWhateverTheRandomNumber) {
    for (const double random :
         {-1.0, 2.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        Backoff backoff{1s, 1s};
        const microseconds wait = backoff.next(random);
        EXPECT_GE(wait, 500ms);
        EXPECT_LE(wait, 1s);
    }
}

}  // namespace
}  // namespace commitq::core
