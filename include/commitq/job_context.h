/// @file
/// What a handler sees of its job.
///
///     worker.on("mail.send", [](commitq::JobContext& job) {
///         send_mail(job.payload(), job.stop_token());
///         return commitq::Outcome::done();
///     });
#pragma once

#include <commitq/export.h>
#include <commitq/handle.h>
#include <commitq/queue.h>
#include <commitq/transaction.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>

namespace commitq {

/// Why a running handler is asked to stop.
enum class StopReason {
    none,        ///< It is not asked to.
    lease_lost,  ///< The job no longer belongs to this worker; its result will be discarded.
    timeout,     ///< The handler's `HandlerOptions::timeout` is over.
    shutdown,    ///< `Worker::stop` has used up two thirds of its deadline.
};

/// The name of @p reason as it stands above.
COMMITQ_EXPORT std::string_view to_string(StopReason reason) noexcept;

namespace worker {
class Run;
}

/// One attempt at one job. Ownership: the worker's; valid until the handler returns. Threading: `stop_token` and
/// `stop_reason` are thread-safe, the rest belongs to the handler's thread.
///
/// Delivery is at least once: after a crash, or when a lease ran out, the same job comes again, with the same `id`.
/// Make effects idempotent by `id`, or use `complete_in`.
class COMMITQ_EXPORT JobContext {
public:
    /// Made by the worker, not by users.
    explicit JobContext(worker::Run& run) noexcept : run_{&run} {}
    JobContext(const JobContext&) = delete;
    JobContext& operator=(const JobContext&) = delete;
    ~JobContext() = default;

    /// The job's id; the same in every attempt.
    [[nodiscard]] JobId id() const noexcept;
    /// The queue that it came from.
    [[nodiscard]] std::string_view queue() const noexcept;
    /// The name it was enqueued under.
    [[nodiscard]] std::string_view type() const noexcept;
    /// The bytes that were enqueued. Untrusted as far as their writer is.
    [[nodiscard]] std::string_view payload() const noexcept;
    /// The headers that were enqueued.
    [[nodiscard]] const Headers& headers() const noexcept;
    /// The priority, 0 (first) to 9.
    [[nodiscard]] int priority() const noexcept;
    /// This attempt's number, from 1.
    [[nodiscard]] int attempt() const noexcept;
    /// The attempt after which the job is dead.
    [[nodiscard]] int max_attempts() const noexcept;
    /// When it was enqueued, by the server's clock.
    [[nodiscard]] std::chrono::system_clock::time_point created_at() const noexcept;

    /// Fires when the handler should come to an end; see `stop_reason`. A handler that ignores it is never killed.
    [[nodiscard]] std::stop_token stop_token() const noexcept;
    /// Why the token fired; the first reason stays.
    [[nodiscard]] StopReason stop_reason() const noexcept;

    /// Starts a transaction on a connection of the worker's own; connections are kept for the next handler.
    /// @throws Error `connection_lost` and others of connecting.
    [[nodiscard]] Transaction begin();

    /// Completes this job inside the transaction open on @p db: an owner-fenced UPDATE, one round trip. When that
    /// transaction commits, the job is completed; when it doesn't, the attempt counts as failed. Commit soon after it:
    /// the lease is not renewed while the transaction holds the job's row.
    /// Return `Outcome::done` afterwards.
    /// @param db a `Transaction` from `begin`, or your own `MYSQL*` in a transaction on the same server.
    /// @throws LeaseLost when the job is no longer this worker's: roll back, by letting it leave the handler.
    /// @throws Error `not_in_transaction`, and what the server gives.
    void complete_in(Handle db);
    /// As above. The worker sees whether @p transaction committed and needs no round trip to find out.
    void complete_in(Transaction& transaction);

private:
    worker::Run* run_;
};

}  // namespace commitq
