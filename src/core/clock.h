// The clock by which this process measures its waits and leases. Times in the database come from the server's clock,
// and the two are never compared.
#pragma once

#include <chrono>
#include <functional>

namespace commitq::core {

using Clock = std::chrono::steady_clock;

/// Where code that must read the clock itself gets it from, so that a test can say what time it is. Thread-safe.
using Now = std::function<Clock::time_point()>;

}  // namespace commitq::core
