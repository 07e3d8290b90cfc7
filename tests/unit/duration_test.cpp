#include "core/duration.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace commitq::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

TEST(ParseDuration, ReadsEachUnit) {
    struct Case {
        std::string_view text;
        microseconds duration;
    };
    const Case cases[] = {
        {"0s", 0s},
        {"250us", 250us},
        {"500ms", 500ms},
        {"5s", 5s},
        {"2min", 2min},
        {"2m", 2min},
        {"1h", 1h},
        {"1d", 24h},
        {"3650d", kMaxDelay},
        {"1.5s", 1500ms},
        {"0.25ms", 250us},
        {"1.000001s", 1'000'001us},
        {"0.5d", 12h},
        {"1.50000000000s", 1500ms},
        {"007s", 7s},
        {"0.0000000000s", 0s},
        {"00000000000000000000000000000001s", 1s},
        {"9223372036854775807us", microseconds{std::numeric_limits<std::int64_t>::max()}},
        {"9223372036854775.807ms", microseconds{std::numeric_limits<std::int64_t>::max()}},
    };
    for (const auto& [text, duration] : cases) {
        SCOPED_TRACE(text);
        EXPECT_EQ(parse_duration(text), duration);
    }
}

TEST(ParseDuration, RefusesAllElse) {
    for (const std::string_view text :
         {"",     " ",    "5",     "s",   "ms",  ".5s",        "5.s",  "5..5s", "1.2.3s", "-5s",
          "+5s",  "5 s",  " 5s",   "5s ", "5S",  "5sec",       "5M",   "5w",    "5y",     "0x5s",
          "1e3s", "5s5s", "1h30m", "inf", "nan", "5\xc2\xb5s", "5,5s", "1'000s"}) {
        SCOPED_TRACE(text);
        EXPECT_EQ(parse_duration(text), std::nullopt);
    }
    EXPECT_EQ(parse_duration(std::string_view{"5s\0", 3}), std::nullopt);
}

TEST(ParseDuration, RefusesWhatDoesNotFit) {
    for (const std::string_view text :
         {"9223372036854775808us", "9223372036854775.808ms", "9223372036854776ms", "106751992d",
          "99999999999999999999s", "18446744073709551616us", "18446744073709551617us"}) {
        SCOPED_TRACE(text);
        EXPECT_EQ(parse_duration(text), std::nullopt);
    }
    EXPECT_EQ(parse_duration(std::string(100'000, '9') + "s"), std::nullopt);
    EXPECT_EQ(parse_duration("0." + std::string(100'000, '9') + "s"), std::nullopt);
    EXPECT_EQ(parse_duration("1." + std::string(100'000, '0') + "s"), 1s);
}

TEST(ParseDuration, RefusesFractionsOfAMicrosecond) {
    EXPECT_EQ(parse_duration("0.5us"), std::nullopt);
    EXPECT_EQ(parse_duration("0.0001ms"), std::nullopt);
    EXPECT_EQ(parse_duration("0.00000000001157407407407407d"), std::nullopt);
    EXPECT_EQ(parse_duration("1.0000001s"), std::nullopt);
    EXPECT_EQ(parse_duration("0.000001s"), 1us);
}

}  // namespace
}  // namespace commitq::core
