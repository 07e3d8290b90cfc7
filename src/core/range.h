// The one check that most options need.
#pragma once

#include <cstdint>
#include <string_view>

namespace commitq::core {

/// The most attempts that a job may have.
inline constexpr int kMaxAttempts = 10'000;

/// @throws Error `invalid_argument`, naming @p option, unless @p low <= @p value <= @p high.
/// @param unit follows the figures in the message, such as `ms`.
void check_range(std::string_view operation, std::string_view option, std::int64_t value, std::int64_t low,
                 std::int64_t high, std::string_view unit = {});

}  // namespace commitq::core
