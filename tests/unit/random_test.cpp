#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <set>

namespace commitq::core {
namespace {

TEST(Random, RepeatsItselfFromTheSameSeed) {
    Random first{1};
    Random second{1};
    Random other{2};
    int different = 0;
    for (int i = 0; i < 100; ++i) {
        const double value = first.uniform();
        EXPECT_EQ(value, second.uniform());
        if (value != other.uniform()) ++different;
    }
    EXPECT_EQ(different, 100);
}

// SplitMix64's published first value for the seed 0 is e220a8397b1dcdaf.
TEST(Random, IsSplitMix64) {
    EXPECT_EQ(Random{0}.uniform(), static_cast<double>(0xe220a8397b1dcdafU >> 11U) / 9007199254740992.0);
}

TEST(Random, SpreadsEvenlyBelowOne) {
    Random random{42};
    std::array<int, 10> counts{};
    for (int i = 0; i < 100'000; ++i) {
        const double value = random.uniform();
        ASSERT_GE(value, 0.0);
        ASSERT_LT(value, 1.0);
        ++counts[static_cast<std::size_t>(value * 10)];
    }
    for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Random, SeedsItselfDifferently) { EXPECT_NE(Random{}.uniform(), Random{}.uniform()); }

TEST(Token, NeverComesTwiceAndIsNeverZero) {
    std::set<Token> tokens;
    for (int i = 0; i < 1000; ++i) tokens.insert(make_token());
    EXPECT_EQ(tokens.size(), 1000U);
    EXPECT_FALSE(tokens.contains(Token{}));
}

TEST(Token, UsesAllItsBits) {
    Token ones{};
    for (int i = 0; i < 200; ++i) {
        const Token token = make_token();
        for (std::size_t at = 0; at < token.size(); ++at) ones[at] |= token[at];
    }
    EXPECT_THAT(ones, ::testing::Each(0xff));
}

TEST(Token, IsShownInHex) {
    Token token{};
    for (std::size_t at = 0; at < token.size(); ++at) token[at] = static_cast<unsigned char>(at * 17);
    EXPECT_EQ(hex(token), "00112233445566778899AABBCCDDEEFF");
}

TEST(UnitInterval, HoldsWhateverComes) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(unit_interval(0.0), 0.0);
    EXPECT_EQ(unit_interval(0.25), 0.25);
    EXPECT_EQ(unit_interval(1.0), 1.0);
    EXPECT_EQ(unit_interval(1.5), 1.0);
    EXPECT_EQ(unit_interval(-0.5), 0.0);
    EXPECT_EQ(unit_interval(infinity), 1.0);
    EXPECT_EQ(unit_interval(-infinity), 0.0);
    EXPECT_EQ(unit_interval(std::numeric_limits<double>::quiet_NaN()), 0.0);
}

}  // namespace
}  // namespace commitq::core
