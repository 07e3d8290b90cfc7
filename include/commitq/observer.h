/// @file
/// Hooks for metrics and tracing: one for each event.
///
///     struct Counting : commitq::Observer {
///         std::atomic<int> completed{0};
///         void on_completed(const commitq::JobEvent&) noexcept override { ++completed; }
///     };
///     commitq::Worker worker{options, {.observer = std::make_shared<Counting>()}};
#pragma once

#include <commitq/error.h>
#include <commitq/export.h>
#include <commitq/queue.h>

#include <chrono>
#include <cstddef>
#include <string_view>

namespace commitq {

/// What an event says of its job. The views are valid during the hook.
struct JobEvent {
    JobId id = 0;                        ///< The job.
    std::string_view queue{};            ///< Its queue.
    std::string_view type{};             ///< Its type.
    int attempt = 0;                     ///< The attempt's number, from 1.
    std::string_view reason{};           ///< Why it was retried, is dead or cancelled; else empty.
    std::chrono::microseconds wait{0};   ///< From being due to the claim, by the server's clock.
    std::chrono::microseconds run{0};    ///< How long the handler ran; 0 before it has.
    std::chrono::microseconds delay{0};  ///< Until the next attempt, for retry and snooze.
};

/// Override what you need; every hook does nothing by default. Hooks are called from the worker's threads, several at
/// once, never under a lock of commitq; keep them short. They are noexcept: what throws in one ends the process.
class COMMITQ_EXPORT Observer {
public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    virtual ~Observer();

    /// The claim committed: the job is this worker's.
    virtual void on_claimed(const JobEvent& event) noexcept;
    /// Its handler is about to run.
    virtual void on_started(const JobEvent& event) noexcept;
    /// It is completed in the database.
    virtual void on_completed(const JobEvent& event) noexcept;
    /// Its attempt failed, and the retry is written.
    virtual void on_retried(const JobEvent& event) noexcept;
    /// It was snoozed.
    virtual void on_snoozed(const JobEvent& event) noexcept;
    /// It is a dead letter.
    virtual void on_dead(const JobEvent& event) noexcept;
    /// It was cancelled.
    virtual void on_cancelled(const JobEvent& event) noexcept;
    /// It went back unstarted, without using an attempt.
    virtual void on_released(const JobEvent& event) noexcept;
    /// Its lease is gone; what its handler returned, or will return, is discarded.
    virtual void on_lease_lost(const JobEvent& event) noexcept;
    /// The reaper returned @p returned expired jobs to pending and made @p dead others dead letters.
    virtual void on_reaped(std::size_t returned, std::size_t dead) noexcept;
    /// A background loop met an error, counted it, and goes on. @p loop is `claim`, `complete`, `heartbeat` or `reap`.
    virtual void on_error(std::string_view loop, const Error& error) noexcept;
};

}  // namespace commitq
