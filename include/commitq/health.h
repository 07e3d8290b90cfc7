/// @file
/// How a worker or a reaper is doing, for the host's own health endpoint.
///
///     const commitq::WorkerHealth health = worker.health();
///     const bool ready = health.started && health.consecutive_errors < 10;
///
/// Ages are measured by this process's steady clock. Nothing here asks the server: `health` returns at once, whatever
/// the server does.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace commitq {

/// One background loop.
struct LoopHealth {
    std::string name{};       ///< `claim`, `complete`, `heartbeat`, `watch` or `reap`.
    bool alive = false;       ///< Its thread runs. False before `start` and after `stop`; no error ends a loop.
    std::string waits_for{};  ///< What it waits for just now, in words, such as "work", "the server" or "its next try".
    bool connected = false;   ///< The server answered the last thing that it asked, if only by a refusal.
    std::uint64_t consecutive_errors = 0;  ///< Since its last success.
    std::optional<std::chrono::milliseconds>
        since_success{};  ///< Since the server last did what it asked; none so far: empty.
};

/// What `Worker::health` returns.
struct WorkerHealth {
    bool started = false;    ///< Between `start` and `stop`.
    bool connected = false;  ///< Started, and no loop has lost its connection since the server last answered it.
    std::optional<std::chrono::milliseconds> since_claim{};      ///< Since the last look for work, found or not.
    std::optional<std::chrono::milliseconds> since_heartbeat{};  ///< Since leases were last renewed.
    std::uint64_t consecutive_errors = 0;                        ///< The most of any loop.
    std::size_t held = 0;                                        ///< Jobs claimed and not settled.
    std::size_t running = 0;                                     ///< Those of them whose handlers run.
    /// Until the lease that ends first does, of the jobs held; negative when it is over; empty when none is held.
    std::optional<std::chrono::milliseconds> lease_left{};
    std::vector<LoopHealth> loops{};  ///< Of the worker, and of its reaper; empty before `start`.
};

}  // namespace commitq
