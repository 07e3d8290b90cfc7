// What must hold of a job before anything is sent.
#pragma once

#include <commitq/queue.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace commitq::core {

/// Checks one job against the rules in `commitq/queue.h`.
/// @throws Error `too_large` for the payload, `invalid_argument` for all else.
void check_enqueue(std::string_view operation, std::string_view type, std::size_t payload_size,
                   const EnqueueOptions& options, std::size_t max_payload);

/// `2026-11-30 22:01:02.123456`: UTC, without quotes, rounded down, whatever TZ and locale say. Times outside the years
/// 1000 to 9999, which is what DATETIME can hold, become the nearest that it can.
[[nodiscard]] std::string datetime_literal(std::chrono::system_clock::time_point time);

/// The same for a type that reaches the year 9999 in every standard library.
[[nodiscard]] std::string datetime_text(std::chrono::sys_time<std::chrono::microseconds> time);

}  // namespace commitq::core
