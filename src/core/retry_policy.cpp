#include <commitq/retry_policy.h>

#include "core/duration.h"
#include "core/names.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace commitq {

namespace {

using std::chrono::microseconds;

constexpr std::string_view kExponential = "RetryPolicy::exponential";

}  // namespace

RetryPolicy::RetryPolicy() : base_{std::chrono::seconds{10}}, factor_{2.0}, cap_{std::chrono::hours{1}}, jitter_{0.1} {}

RetryPolicy RetryPolicy::fixed(microseconds delay) {
    if (delay < microseconds{0} || delay > core::kMaxDelay)
        throw core::invalid("RetryPolicy::fixed", "delay must be 0 to 10 years");
    RetryPolicy policy;
    policy.base_ = policy.cap_ = delay;
    policy.factor_ = 1.0;
    policy.jitter_ = 0.0;
    return policy;
}

RetryPolicy RetryPolicy::exponential(microseconds base, double factor, microseconds cap, double jitter) {
    if (base <= microseconds{0}) throw core::invalid(kExponential, "base must be above 0");
    // Written so that NaN fails too.
    if (!(factor >= 1.0 && factor <= 100.0)) throw core::invalid(kExponential, "factor must be 1.0 to 100.0");
    if (cap < base || cap > core::kMaxDelay)
        throw core::invalid(kExponential, "cap must be at least base and at most 10 years");
    if (!(jitter >= 0.0 && jitter <= 1.0)) throw core::invalid(kExponential, "jitter must be 0.0 to 1.0");
    RetryPolicy policy;
    policy.base_ = base;
    policy.factor_ = factor;
    policy.cap_ = cap;
    policy.jitter_ = jitter;
    return policy;
}

RetryPolicy RetryPolicy::outbox() {
    RetryPolicy policy = exponential(std::chrono::minutes{2}, 2.0, core::kMaxDelay, 0.0);
    policy.max_attempts_ = 8;
    return policy;
}

RetryPolicy RetryPolicy::custom(Function function) {
    if (!function) throw core::invalid("RetryPolicy::custom", "function must not be empty");
    RetryPolicy policy;
    policy.function_ = std::move(function);
    return policy;
}

microseconds RetryPolicy::delay(int attempt, double random) const noexcept {
    if (function_) {
        try {
            const microseconds delay = function_(attempt);
            if (delay >= microseconds{0}) return std::min(delay, core::kMaxDelay);
        } catch (...) {
            // The default stands in: a failing function must not lose the job.
        }
    }
    // pow may give infinity, which the cap takes care of.
    double delay = static_cast<double>(base_.count()) * std::pow(factor_, std::max(attempt, 1) - 1);
    delay = std::min(delay, static_cast<double>(cap_.count()));
    delay *= 1.0 + jitter_ * (2.0 * core::unit_interval(random) - 1.0);
    return std::min(microseconds{std::llround(delay)}, core::kMaxDelay);
}

}  // namespace commitq
