// How quickly things happen in the shop.
#pragma once

#include <chrono>

namespace shop {

/// How long a killed worker's jobs wait for the reaper. Thirty seconds, the default, suit a service better.
inline constexpr std::chrono::milliseconds kLease{3'000};
/// Between looks of the reaper.
inline constexpr std::chrono::milliseconds kReaperInterval{500};
/// Between looks of the shop at what is going on.
inline constexpr std::chrono::milliseconds kTick{100};
/// How long workers may take to stop.
inline constexpr std::chrono::milliseconds kStopDeadline{20'000};

}  // namespace shop
