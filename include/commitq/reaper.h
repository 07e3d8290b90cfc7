/// @file
/// Returns jobs whose lease has run out to pending, or to the dead letters when their attempts are used up.
///
/// Every `Worker` has one by default; of all on one prefix only one works at a time. Use it alone where no worker
/// should have it:
///
///     commitq::Reaper reaper{options, {}};
///     reaper.start();
#pragma once

#include <commitq/connect_options.h>
#include <commitq/export.h>
#include <commitq/health.h>
#include <commitq/observer.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace commitq {

/// Settings of a `Reaper`.
struct ReaperOptions {
    std::string prefix = "commitq_";  ///< Of the table names; `[A-Za-z0-9_]+`, at most 32 characters.
    std::chrono::milliseconds interval{
        5'000};  ///< Between passes over all reapers of a prefix, jittered; 100 ms to 1 h.
    /// How long to reap nothing after this reaper's connection was away, or the server came up: live workers
    /// renew first. Give it the longest lease of the workers. 0 to 1 day; default 30 s.
    std::chrono::milliseconds grace{30'000};
    int batch = 100;                           ///< Rows per transaction, 1 to 1,000.
    std::shared_ptr<spdlog::logger> logger{};  ///< Where to log; null is silent.
    std::shared_ptr<Observer> observer{};      ///< `on_reaped` and `on_error`; null for none.
};

/// What a pass did.
struct ReapReport {
    std::size_t returned = 0;  ///< Jobs that are pending again.
    std::size_t dead = 0;      ///< Jobs whose attempts were used up.
};

/// Reaps expired leases. Ownership: its thread and connection. Threading: one thread at a time, but `health` from any.
class COMMITQ_EXPORT Reaper {
public:
    /// Checks the options; connects to nothing.
    /// @throws Error `invalid_argument`.
    Reaper(ConnectOptions connection, ReaperOptions options);
    Reaper(const Reaper&) = delete;
    Reaper& operator=(const Reaper&) = delete;
    /// As `stop`.
    ~Reaper();

    /// Connects, checks the schema, and starts the thread.
    /// @throws Error `wrong_state` when started, `schema_*`, `connection_lost`, `access_denied`, `tls_failed`.
    void start();

    /// Ends the thread; a pass under way ends after its current batch. Never throws.
    void stop() noexcept;

    /// How its loop is doing. Asks nothing of the server. Thread-safe.
    [[nodiscard]] LoopHealth health() const;

    /// One pass now, on the calling thread, without grace and without regard to `interval`. Not once started.
    /// @throws Error what `start` throws, and errors of the statements; a job that the server refuses to change goes to
    ///         the observer's `on_error` instead.
    ReapReport reap_once();

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace commitq
