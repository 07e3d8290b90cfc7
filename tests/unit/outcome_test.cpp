#include <commitq/outcome.h>

#include "core/duration.h"

#include <gtest/gtest.h>

#include <string>

namespace commitq {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

TEST(Outcome, SaysWhatItWasMadeFrom) {
    struct Case {
        Outcome outcome;
        Outcome::Kind kind;
        std::string reason;
        std::optional<microseconds> delay;
    };
    const Case cases[] = {
        {Outcome::done(), Outcome::Kind::done, "", std::nullopt},
        {Outcome::retry("smtp 451"), Outcome::Kind::retry, "smtp 451", std::nullopt},
        {Outcome::retry("smtp 451", 5s), Outcome::Kind::retry, "smtp 451", 5s},
        {Outcome::retry("smtp 451", 0s), Outcome::Kind::retry, "smtp 451", 0s},
        {Outcome::snooze(1h), Outcome::Kind::snooze, "", 1h},
        {Outcome::dead("no such user"), Outcome::Kind::dead, "no such user", std::nullopt},
        {Outcome::cancel(), Outcome::Kind::cancel, "", std::nullopt},
        {Outcome::cancel("order withdrawn"), Outcome::Kind::cancel, "order withdrawn", std::nullopt},
    };
    for (const auto& [outcome, kind, reason, delay] : cases) {
        EXPECT_EQ(outcome.kind(), kind);
        EXPECT_EQ(outcome.reason(), reason);
        EXPECT_EQ(outcome.delay(), delay);
    }
}

TEST(Outcome, ClampsItsDelay) {
    struct Case {
        microseconds given;
        microseconds kept;
    };
    for (const auto& [given, kept] :
         {Case{-1us, 0us}, Case{microseconds::min(), 0us}, Case{core::kMaxDelay, core::kMaxDelay},
          Case{core::kMaxDelay + 1us, core::kMaxDelay}, Case{microseconds::max(), core::kMaxDelay}}) {
        EXPECT_EQ(Outcome::snooze(given).delay(), kept);
        EXPECT_EQ(Outcome::retry("r", given).delay(), kept);
    }
}

TEST(Outcome, KeepsItsReasonUncleaned) {
    const std::string reason(100'000, '\xff');
    EXPECT_EQ(Outcome::dead(reason).reason(), reason);
}

}  // namespace
}  // namespace commitq
