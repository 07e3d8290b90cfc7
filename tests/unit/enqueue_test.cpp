#include "core/enqueue.h"

#include "core/duration.h"
#include "core/random.h"
#include "thrown.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <locale>
#include <optional>
#include <string>

namespace commitq::core {
namespace {

using namespace std::chrono_literals;
using namespace std::chrono;

constexpr std::size_t kMaxPayload = 1000;

void check(const EnqueueOptions& options) { check_enqueue("enqueue", "mail.send", 10, options, kMaxPayload); }

sys_time<microseconds> at(int y, unsigned m, unsigned d, microseconds time = 0us) {
    return sys_days{year{y} / month{m} / day{d}} + time;
}

TEST(CheckEnqueue, AllowsTheDefaultsAndTheLimits) {
    EXPECT_NO_THROW(check({}));
    EXPECT_NO_THROW(check({.priority = 0}));
    EXPECT_NO_THROW(check({.priority = 9}));
    EXPECT_NO_THROW(check({.delay = kMaxDelay}));
    EXPECT_NO_THROW(check({.max_attempts = 1}));
    EXPECT_NO_THROW(check({.max_attempts = 10'000}));
    EXPECT_NO_THROW(check({.headers = {{"traceparent", "00-1-2-01"}}}));
}

TEST(CheckEnqueue, RefusesWhatIsOutOfRange) {
    constexpr int lowest = std::numeric_limits<int>::min();
    constexpr int highest = std::numeric_limits<int>::max();
    for (const int priority : {-1, 10, lowest, highest})
        expect_invalid([&] { check({.priority = priority}); }, "enqueue", "priority");
    for (const int attempts : {0, -1, 10'001, lowest, highest})
        expect_invalid([&] { check({.max_attempts = attempts}); }, "enqueue", "max_attempts");
    for (const microseconds delay : {-1us, kMaxDelay + 1us, microseconds::min(), microseconds::max()})
        expect_invalid([&] { check({.delay = delay}); }, "enqueue", "delay");
    expect_invalid([] { check({.headers = {{"a b", "v"}}}); }, "enqueue", "header");
}

TEST(CheckEnqueue, RefusesABadType) {
    for (const std::string& type : {std::string{}, std::string{"mail send"}, std::string(129, 'x')})
        expect_invalid([&] { check_enqueue("enqueue_many", type, 0, {}, kMaxPayload); }, "enqueue_many", "type name");
}

TEST(CheckEnqueue, AllowsAnyTimeThatTheClockCanSay) {
    EXPECT_NO_THROW(check({.at = system_clock::time_point{}}));
    EXPECT_NO_THROW(check({.at = system_clock::time_point{-1us}}));
    EXPECT_NO_THROW(check({.at = system_clock::time_point::min()}));
    EXPECT_NO_THROW(check({.at = system_clock::time_point{sys_days{2200y / 1 / 1}}}));
}

// On libstdc++ the clock ends in 2262 and no time is too late.
TEST(CheckEnqueue, RefusesTimesAfterTheYear9999) {
    const bool reaches = floor<days>(system_clock::time_point::max()) > sys_days{9999y / 12 / 31};
    if (reaches)
        expect_invalid([] { check({.at = system_clock::time_point::max()}); }, "enqueue", "9999");
    else
        EXPECT_NO_THROW(check({.at = system_clock::time_point::max()}));
}

TEST(CheckEnqueue, RefusesATimeTogetherWithADelay) {
    const auto time = system_clock::time_point{sys_days{2030y / 1 / 1}};
    EXPECT_NO_THROW(check({.delay = 0us, .at = time}));
    expect_invalid([&] { check({.delay = 1us, .at = time}); }, "enqueue", "exclude");
}

TEST(CheckEnqueue, TellsATooLargePayloadApart) {
    EXPECT_NO_THROW(check_enqueue("enqueue", "t", kMaxPayload, {}, kMaxPayload));
    EXPECT_NO_THROW(check_enqueue("enqueue", "t", 0, {}, 0));
    for (const std::size_t size : {kMaxPayload + 1, std::numeric_limits<std::size_t>::max()}) {
        const auto error = thrown([&] { check_enqueue("enqueue", "t", size, {}, kMaxPayload); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::too_large);
        EXPECT_EQ(error->operation(), "enqueue");
        EXPECT_EQ(error->repeat(), Repeat::never);
        EXPECT_EQ(error->transaction(), TransactionState::intact);
        EXPECT_NE(std::string{error->what()}.find("limit of 1000"), std::string::npos) << error->what();
    }
}

// Restores time zone and locale when the test ends. No other thread runs meanwhile, so the environment may be changed.
// NOLINTBEGIN(concurrency-mt-unsafe)
class DatetimeLiteral : public ::testing::Test {
protected:
    static void set_time_zone(const char* zone) {
        setenv("TZ", zone, 1);
        tzset();
    }

    void TearDown() override {
        if (zone_)
            set_time_zone(zone_->c_str());
        else
            unsetenv("TZ");
        tzset();
        std::locale::global(locale_);
    }

private:
    static std::optional<std::string> current_zone() {
        const char* const zone = std::getenv("TZ");
        if (zone == nullptr) return std::nullopt;
        return zone;
    }

    std::optional<std::string> zone_ = current_zone();
    std::locale locale_;
};
// NOLINTEND(concurrency-mt-unsafe)

TEST_F(DatetimeLiteral, IsUtcToTheMicrosecond) {
    struct Case {
        sys_time<microseconds> time;
        std::string_view text;
    };
    const Case cases[] = {
        {at(2026, 11, 30, 22h + 1min + 2s + 123456us), "2026-11-30 22:01:02.123456"},
        {at(1970, 1, 1), "1970-01-01 00:00:00.000000"},
        {at(1970, 1, 1, -1us), "1969-12-31 23:59:59.999999"},
        {at(1969, 7, 20, 20h + 17min + 40s), "1969-07-20 20:17:40.000000"},
        {at(1900, 2, 28, 24h), "1900-03-01 00:00:00.000000"},  // a hundred, and no leap year
        {at(2000, 2, 28, 24h), "2000-02-29 00:00:00.000000"},  // four hundred
        {at(2024, 2, 28, 24h), "2024-02-29 00:00:00.000000"},
        {at(2024, 12, 30, 24h), "2024-12-31 00:00:00.000000"},
        {at(2025, 2, 28, 24h), "2025-03-01 00:00:00.000000"},
        {at(2038, 1, 19, 3h + 14min + 8s), "2038-01-19 03:14:08.000000"},  // where TIMESTAMP ends
        {at(2100, 2, 28, 24h), "2100-03-01 00:00:00.000000"},
        {at(9999, 12, 31, 24h - 1us), "9999-12-31 23:59:59.999999"},
        {at(1000, 1, 1), "1000-01-01 00:00:00.000000"},
    };
    for (const auto& [time, text] : cases) EXPECT_EQ(datetime_text(time), text);
}

TEST_F(DatetimeLiteral, StopsWhereTheColumnDoes) {
    EXPECT_EQ(datetime_text(at(10000, 1, 1)), "9999-12-31 23:59:59.999999");
    EXPECT_EQ(datetime_text(at(30000, 1, 1)), "9999-12-31 23:59:59.999999");
    EXPECT_EQ(datetime_text(at(999, 12, 31)), "1000-01-01 00:00:00.000000");
    EXPECT_EQ(datetime_text(at(-5, 12, 31)), "1000-01-01 00:00:00.000000");
    EXPECT_EQ(datetime_text(sys_time<microseconds>::max()), "9999-12-31 23:59:59.999999");
    EXPECT_EQ(datetime_text(sys_time<microseconds>::min()), "1000-01-01 00:00:00.000000");
    EXPECT_EQ(datetime_literal(system_clock::time_point::max()).size(), 26U);
    EXPECT_EQ(datetime_literal(system_clock::time_point::min()).size(), 26U);
}

TEST_F(DatetimeLiteral, RoundsDown) {
    using Tick = system_clock::duration;
    const system_clock::time_point start{sys_days{2026y / 1 / 1}};
    if constexpr (std::ratio_less_v<Tick::period, std::micro>) {
        EXPECT_EQ(datetime_literal(start + 999'999'999 * Tick{1}), "2026-01-01 00:00:00.999999");
        EXPECT_EQ(datetime_literal(start - Tick{1}), "2025-12-31 23:59:59.999999");
        EXPECT_EQ(datetime_literal(system_clock::time_point{} - Tick{1}), "1969-12-31 23:59:59.999999");
    }
    EXPECT_EQ(datetime_literal(start), "2026-01-01 00:00:00.000000");
}

TEST_F(DatetimeLiteral, DoesNotDependOnTheTimeZone) {
    const system_clock::time_point times[] = {
        system_clock::time_point{sys_days{2026y / 9 / 27}} + 14h + 30min,  // the clocks change in Auckland
        system_clock::time_point{sys_days{2026y / 4 / 4}} + 14h + 30min,
        system_clock::time_point{sys_days{2026y / 1 / 1}},
    };
    for (const auto time : times) {
        set_time_zone("UTC");
        const std::string text = datetime_literal(time);
        for (const char* const zone :
             {"Pacific/Auckland", "America/New_York", "NZST-12NZDT,M9.5.0,M4.1.0/3", "right/UTC"}) {
            set_time_zone(zone);
            EXPECT_EQ(datetime_literal(time), text) << zone;
        }
    }
}

TEST_F(DatetimeLiteral, DoesNotDependOnTheLocale) {
    struct Grouping : std::numpunct<char> {
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\1"; }
    };
    std::locale::global(std::locale{std::locale::classic(), new Grouping});
    EXPECT_EQ(datetime_text(at(2026, 11, 30, 123456us)), "2026-11-30 00:00:00.123456");
}

// Against the C library's own calendar, over all the years of the column.
TEST_F(DatetimeLiteral, AgreesWithGmtime) {
    Random random{32};
    const auto first = at(1000, 1, 1).time_since_epoch() / 1s;
    const auto last = at(9999, 12, 31).time_since_epoch() / 1s;
    for (int i = 0; i < 20'000; ++i) {
        const auto second = first + static_cast<std::int64_t>(random.uniform() * static_cast<double>(last - first));
        const auto time = static_cast<std::time_t>(second);
        std::tm fields{};
        ASSERT_NE(gmtime_r(&time, &fields), nullptr);
        char text[32];
        ASSERT_GT(std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &fields), 0U);
        ASSERT_EQ(datetime_text(sys_time<microseconds>{seconds{second}}), std::string{text} + ".000000");
    }
}

}  // namespace
}  // namespace commitq::core
