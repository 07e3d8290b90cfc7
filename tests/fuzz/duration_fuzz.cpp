// Durations: read exactly as 128-bit arithmetic does it, or refused.
#include "fuzz/check.h"

#include <core/duration.h>
#include <fmt/format.h>

#include <limits>

namespace commitq::fuzz {
namespace {

__extension__ using Wide = __int128;

Wide number(std::string_view digits) {
    Wide total = 0;
    for (const char c : digits) {
        total = total * 10 + (c - '0');
    }
    return total;
}

/// In microseconds; 0 if there is no such unit.
Wide unit_of(std::string_view name) {
    if (name == "us") return 1;
    if (name == "ms") return 1'000;
    if (name == "s") return 1'000'000;
    if (name == "m" || name == "min") return 60'000'000;
    if (name == "h") return 3'600'000'000;
    if (name == "d") return 86'400'000'000;
    return 0;
}

std::string_view digits_of(std::string_view text) { return text.substr(0, text.find_first_not_of("0123456789")); }

std::optional<std::int64_t> expected_of(std::string_view text) {
    std::string_view whole = digits_of(text);
    std::string_view fraction = "0";
    text.remove_prefix(whole.size());
    if (text.starts_with('.')) {
        fraction = digits_of(text.substr(1));
        text.remove_prefix(1 + fraction.size());
    }
    const Wide unit = unit_of(text);
    if (whole.empty() || fraction.empty() || unit == 0) {
        return std::nullopt;
    }
    whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
    fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);  // none: npos + 1 is 0
    // 2^63 has 19 digits; a day is a multiple of 2^13 us, and of no higher power of 2 or 5.
    if (whole.size() > 19 || fraction.size() > 13) {
        return std::nullopt;
    }
    Wide scale = 1;
    for (std::size_t i = 0; i < fraction.size(); ++i) {
        scale *= 10;
    }
    const Wide low = number(fraction) * unit;
    const Wide total = number(whole) * unit + low / scale;
    if (low % scale != 0 || total > std::numeric_limits<std::int64_t>::max()) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(total);
}

void check_duration(std::string_view text) {
    const auto duration = core::parse_duration(text);
    const auto expected = expected_of(text);
    require(duration.has_value() == expected.has_value(), "a duration is read exactly when it is one");
    if (duration) {
        require(duration->count() == *expected, "a duration is read exactly");
        require(core::parse_duration(fmt::format("{}us", duration->count())) == duration, "microseconds read back");
    }
}

}  // namespace
}  // namespace commitq::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace commitq::fuzz;
    check_duration(as_text(data, size));
    return 0;
}
