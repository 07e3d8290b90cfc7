// Durations as people write them.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace commitq::core {

/// The longest delay of anything: 10 years.
inline constexpr std::chrono::microseconds kMaxDelay = std::chrono::days{3650};

/// Reads `250us`, `500ms`, `5s`, `2min` or `2m`, `1h`, `1d`, also with decimals as in `1.5s`. No sign, no blanks, no
/// bare number.
/// @returns nothing for anything else, for what doesn't fit, and for fractions of a microsecond.
[[nodiscard]] std::optional<std::chrono::microseconds> parse_duration(std::string_view text) noexcept;

}  // namespace commitq::core
