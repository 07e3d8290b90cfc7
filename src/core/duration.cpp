#include "core/duration.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

namespace commitq::core {

namespace {

using std::chrono::microseconds;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) noexcept {
    const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
    const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(digits.size());
    return digits;
}

std::optional<std::int64_t> unit_of(std::string_view name) noexcept {
    constexpr std::array<std::pair<std::string_view, microseconds>, 7> units{{
        {"us", microseconds{1}},
        {"ms", std::chrono::milliseconds{1}},
        {"s", std::chrono::seconds{1}},
        {"m", std::chrono::minutes{1}},
        {"min", std::chrono::minutes{1}},
        {"h", std::chrono::hours{1}},
        {"d", std::chrono::days{1}},
    }};
    const auto found = std::find_if(units.begin(), units.end(), [&](auto& unit) { return unit.first == name; });
    if (found == units.end()) return std::nullopt;
    return found->second.count();
}

std::optional<std::int64_t> multiply(std::string_view digits, std::int64_t unit) noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::int64_t total = 0;
    for (const char c : digits) {
        const std::int64_t part = (c - '0') * unit;
        if (total > (most - part) / 10) return std::nullopt;
        total = total * 10 + part;
    }
    return total;
}

// `digits` behind the decimal point, from the last to the first, so that no intermediate result outgrows the unit.
std::optional<std::int64_t> multiply_fraction(std::string_view digits, std::int64_t unit) noexcept {
    std::int64_t total = 0;
    for (; !digits.empty(); digits.remove_suffix(1)) {
        total += (digits.back() - '0') * unit;
        if (total % 10 != 0) return std::nullopt;
        total /= 10;
    }
    return total;
}

}  // namespace

std::optional<microseconds> parse_duration(std::string_view text) noexcept {
    const std::string_view whole = take_digits(text);
    if (whole.empty()) return std::nullopt;
    std::string_view fraction;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        fraction = take_digits(text);
        if (fraction.empty()) return std::nullopt;
    }
    const auto unit = unit_of(text);
    if (!unit) return std::nullopt;
    const auto high = multiply(whole, *unit);
    const auto low = multiply_fraction(fraction, *unit);
    if (!high || !low || *high > std::numeric_limits<std::int64_t>::max() - *low) return std::nullopt;
    return microseconds{*high + *low};
}

}  // namespace commitq::core
