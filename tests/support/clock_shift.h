// A wrong wall clock, for this process alone.
#pragma once

#include <chrono>

namespace commitq::test {

/// While it lives, every wall clock of this process (std::chrono::system_clock, time, gettimeofday, CLOCK_REALTIME) is
/// ahead of the true time, also inside the C++ and the client library; the server's is not. Steady clocks are left alone:
/// they have no time of day. One at a time.
class ClockShift {
public:
    explicit ClockShift(std::chrono::seconds ahead);
    ClockShift(const ClockShift&) = delete;
    ClockShift& operator=(const ClockShift&) = delete;
    ~ClockShift();
};

}  // namespace commitq::test
