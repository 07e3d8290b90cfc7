#include "core/backoff.h"

#include "core/random.h"

#include <cmath>
#include <limits>

namespace commitq::core {

Backoff::Backoff(std::chrono::microseconds min, std::chrono::microseconds max) noexcept
    : min_{min}, max_{max}, current_{min} {}

std::chrono::microseconds Backoff::next(double random) noexcept {
    const double wait = static_cast<double>(current_.count()) * (0.5 + 0.5 * unit_interval(random));
    current_ = current_ > max_ / 2 ? max_ : current_ * 2;
    if (failures_ < std::numeric_limits<int>::max()) ++failures_;
    return std::chrono::microseconds{std::llround(wait)};
}

void Backoff::reset() noexcept {
    current_ = min_;
    failures_ = 0;
}

}  // namespace commitq::core
