/// @file
/// How long a failed job waits before its next attempt.
///
///     worker.on("mail.send", send, {.max_attempts = 8,
///                                   .retry = commitq::RetryPolicy::exponential(1min, 2.0, 24h)});
#pragma once

#include <commitq/export.h>

#include <chrono>
#include <functional>
#include <optional>

namespace commitq {

/// Computes the delay after a failed attempt. A value type; thread-safe to read.
class COMMITQ_EXPORT RetryPolicy {
public:
    /// The delay after attempt number `attempt` (1 is the first) failed. Must be thread-safe; what it throws, or a
    /// negative result, makes the delay that of `exponential(10s, 2.0, 1h)`.
    using Function = std::function<std::chrono::microseconds(int attempt)>;

    /// The default: `exponential(10s, 2.0, 1h)`.
    RetryPolicy();

    /// Always @p delay, 0 to 10 years, without jitter.
    /// @throws Error `invalid_argument`.
    [[nodiscard]] static RetryPolicy fixed(std::chrono::microseconds delay);

    /// `base * factor^(attempt-1)`, at most @p cap, each spread evenly over +/- @p jitter of itself.
    /// @param base delay after the first attempt, above 0.
    /// @param factor 1.0 to 100.0.
    /// @param cap the longest delay, at least @p base, at most 10 years.
    /// @param jitter 0.0 (none) to 1.0; default 0.1. It keeps jobs that failed together from coming back together.
    /// @throws Error `invalid_argument`.
    [[nodiscard]] static RetryPolicy exponential(std::chrono::microseconds base, double factor,
                                                 std::chrono::microseconds cap, double jitter = 0.1);

    /// The classic of hand-written outbox tables: 2^n minutes after attempt n (2, 4, 8, ...), dead after 8 attempts,
    /// without jitter.
    [[nodiscard]] static RetryPolicy outbox();

    /// Your own function.
    /// @throws Error `invalid_argument` if it is empty.
    [[nodiscard]] static RetryPolicy custom(Function function);

    /// The delay after attempt number @p attempt (from 1) failed. Never throws; 0 to 10 years.
    /// @param attempt the attempt that failed.
    /// @param random where in the jitter's range to land, 0.0 to below 1.0.
    [[nodiscard]] std::chrono::microseconds delay(int attempt, double random) const noexcept;

    /// The number of attempts that the policy brings with it (`outbox`), used where nothing else is set.
    [[nodiscard]] std::optional<int> max_attempts() const noexcept { return max_attempts_; }

private:
    std::chrono::microseconds base_{};
    double factor_ = 1.0;
    std::chrono::microseconds cap_{};
    double jitter_ = 0.0;
    Function function_{};
    std::optional<int> max_attempts_{};
};

}  // namespace commitq
