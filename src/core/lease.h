// When a lease is over, judged without asking the server.
#pragma once

#include "core/clock.h"

#include <algorithm>

namespace commitq::core {

/// The local deadline of a lease: the time when the statement that set it was *sent*, plus the lease. The server's own
/// began after that, so we give up first, whatever the two clocks say. Never reads a clock. Thread-compatible.
class LeaseClock {
public:
    explicit constexpr LeaseClock(Clock::duration lease) noexcept : lease_{lease} {}

    /// The deadline of a claim or renewal sent at @p sent.
    [[nodiscard]] constexpr Clock::time_point deadline(Clock::time_point sent) const noexcept { return sent + lease_; }

    /// Notes that a claim or renewal sent at @p sent succeeded.
    constexpr void renewed(Clock::time_point sent) noexcept { deadline_ = std::max(deadline_, deadline(sent)); }

    /// Whether the lease last noted is over; also when none was.
    [[nodiscard]] constexpr bool has_passed(Clock::time_point now) const noexcept { return now >= deadline_; }

private:
    Clock::duration lease_;
    Clock::time_point deadline_ = Clock::time_point::min();
};

}  // namespace commitq::core
