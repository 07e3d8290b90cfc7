#include "support/clock_shift.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

namespace commitq::test {
namespace {

std::atomic<long> seconds_ahead{0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): the clock is global

}  // namespace

ClockShift::ClockShift(std::chrono::seconds ahead) { seconds_ahead = ahead.count(); }

ClockShift::~ClockShift() { seconds_ahead = 0; }

}  // namespace commitq::test

// The executable's definitions come before those of libc for every shared library too.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc has names of its own
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec += commitq::test::seconds_ahead.load(std::memory_order_relaxed);
    }
    return result;
}

int gettimeofday(timeval* __restrict time, void* __restrict /*zone*/) noexcept {
    timespec now{};
    const int result = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t* result) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != nullptr) {
        *result = now.tv_sec;
    }
    return now.tv_sec;
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
