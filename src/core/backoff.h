// Waits between tries of a background loop.
#pragma once

#include <chrono>

namespace commitq::core {

/// Waits that double from `min` up to `max`, each spread evenly over [1/2, 1] of itself, so that loops which failed
/// together don't come back together. Thread-compatible.
class Backoff {
public:
    /// @param min above 0. @param max at least @p min.
    Backoff(std::chrono::microseconds min, std::chrono::microseconds max) noexcept;

    /// The next wait. @param random 0.0 to below 1.0.
    [[nodiscard]] std::chrono::microseconds next(double random) noexcept;

    /// Starts again from `min`.
    void reset() noexcept;

    /// Waits given since the last `reset`.
    [[nodiscard]] int failures() const noexcept { return failures_; }

private:
    std::chrono::microseconds min_;
    std::chrono::microseconds max_;
    std::chrono::microseconds current_;
    int failures_ = 0;
};

}  // namespace commitq::core
