// What a background loop last did, for those who ask how it is.
#pragma once

#include <commitq/health.h>
#include <core/clock.h>

#include <atomic>
#include <cstdint>

namespace commitq::core {

/// Kept by a loop, read by anybody. Thread-safe.
class Pulse {
public:
    /// @param name a literal.
    explicit Pulse(const char* name) noexcept : name_{name} {}

    /// @param what a literal.
    void waits_for(const char* what) noexcept { waits_for_ = what; }
    void succeeded() noexcept {
        last_success_ = Clock::now();
        errors_ = 0;
        connected_ = true;
    }
    /// @param connected the server did answer.
    void failed(bool connected) noexcept {
        ++errors_;
        connected_ = connected;
    }

    [[nodiscard]] LoopHealth health() const {
        LoopHealth health{.name = name_,
                          .alive = alive_,
                          .waits_for = waits_for_.load(),
                          .connected = connected_,
                          .consecutive_errors = errors_,
                          .since_success = {}};
        if (const Clock::time_point success = last_success_; success != Clock::time_point{}) {
            health.since_success = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - success);
        }
        return health;
    }

    /// From before a loop's thread is made to its end: a loop that is only about to run is not dead.
    class Alive {
    public:
        explicit Alive(Pulse& pulse) noexcept : pulse_{pulse} {
            pulse_.waits_for("its thread");
            pulse_.alive_ = true;
        }
        Alive(const Alive&) = delete;
        Alive& operator=(const Alive&) = delete;
        ~Alive() {
            pulse_.alive_ = false;
            pulse_.waits_for("nothing");
        }

    private:
        Pulse& pulse_;
    };

private:
    const char* const name_;
    std::atomic<const char*> waits_for_{"nothing"};
    std::atomic<bool> alive_{false};
    std::atomic<bool> connected_{true};  // `start` connects before there is a loop
    std::atomic<std::uint64_t> errors_{0};
    std::atomic<Clock::time_point> last_success_{};
};

}  // namespace commitq::core
