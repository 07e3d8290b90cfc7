/// @file
/// The consumer's side: claims jobs, runs handlers, writes results.
///
///     commitq::Worker worker{commitq::ConnectOptions::from_url(url), {.queues = {"orders"}, .concurrency = 16}};
///     worker.on("order.created", [](commitq::JobContext& job) { return commitq::Outcome::done(); });
///     worker.start();
///     ...
///     auto report = worker.stop(10s);
///
/// `start` connects, checks the server and the schema, and starts threads; after that nothing throws: loops log, count,
/// back off with jitter and go on. A worker opens one connection each for claiming, completing, heartbeat and reaper,
/// and one per handler that calls `JobContext::begin`.
#pragma once

#include <commitq/connect_options.h>
#include <commitq/export.h>
#include <commitq/health.h>
#include <commitq/job_context.h>
#include <commitq/observer.h>
#include <commitq/outcome.h>
#include <commitq/queue.h>
#include <commitq/retry_policy.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spdlog {
class logger;
}

namespace commitq {

class Worker;

namespace testing {
COMMITQ_EXPORT Outcome perform(Worker& worker, std::string_view type, std::string_view payload,
                               const EnqueueOptions& options);
}

/// Runs one job. May throw anything: that is a failed attempt. Runs on one of the worker's threads, outside any
/// lock and transaction, several at once.
using Handler = std::function<Outcome(JobContext&)>;

/// How jobs of one type are run.
struct HandlerOptions {
    /// Attempts before a job is dead, 1 to 10,000, for jobs whose enqueue set none. Default: the retry policy's own,
    /// else `WorkerOptions::max_attempts`.
    std::optional<int> max_attempts{};
    /// Backoff after a failed attempt. Default: `WorkerOptions::retry`.
    std::optional<RetryPolicy> retry{};
    /// Fires the stop token after this long; 0, the default, for never; at most 10 years. The handler isn't killed, and
    /// what it returns counts.
    std::chrono::milliseconds timeout{0};
};

/// How a worker of several queues chooses among those with due jobs.
enum class QueueOrder {
    round_robin,  ///< In turn, a batch each: none starves. The default.
    strict,       ///< Always the first in `WorkerOptions::queues` that has due jobs.
};

/// Settings of a `Worker`; all but `queues` may stay at their defaults.
struct WorkerOptions {
    std::vector<std::string> queues{};  ///< 1 or more queue names, without repeats.
    std::string prefix = "commitq_";    ///< Of the table names; `[A-Za-z0-9_]+`, at most 32 characters.
    int concurrency = 8;                ///< Handler threads, 1 to 1,024.
    int batch = 200;                    ///< The most jobs that one claim takes, 1 to 1,000.
    /// The most jobs held ready beyond those running, 0 to 10,000; 0 claims only what can start at once. The worker
    /// stays below it by itself when handlers are slow: it never holds more than can start within a tenth of the lease.
    int prefetch = 400;
    /// How long a claim lasts unless renewed; 1 s to 1 day.
    std::chrono::milliseconds lease{30'000};
    /// Between renewals; at most half of the lease. Default 0: a third of the lease.
    std::chrono::milliseconds heartbeat{0};
    std::chrono::milliseconds poll_min{20};      ///< Shortest wait of an idle worker; 1 ms to 1 day.
    std::chrono::milliseconds poll_max{250};     ///< Longest, jittered; `poll_min` to 1 day.
    int max_attempts = 20;                       ///< For jobs and handlers that set none, 1 to 10,000.
    RetryPolicy retry{};                         ///< For handlers that set none.
    QueueOrder order = QueueOrder::round_robin;  ///< Among several queues.
    bool reaper = true;                          ///< Run a `Reaper` in this worker.
    std::shared_ptr<spdlog::logger> logger{};    ///< Where to log; null, the default, is silent.
    std::shared_ptr<Observer> observer{};        ///< Hooks; null for none.
};

/// What `Worker::stop` left behind.
struct StopReport {
    std::size_t completed = 0;  ///< Jobs whose results were written while stopping.
    std::size_t released = 0;   ///< Jobs that had not started and went back without using an attempt.
    std::size_t abandoned = 0;  ///< Jobs whose handlers still run or whose result could not be written: the lease
                                ///< of each runs out and a reaper returns it.
    bool clean = true;          ///< Nothing was abandoned, and every thread has ended.
};

/// Claims and runs jobs. Ownership: owns its threads and connections. Threading: `start`, `stop`, `on`, `follow` and
/// `run_once` from one thread at a time; `wake` and `health` from any. Lifetime: handlers may run until the destructor
/// returns, and a handler that ignores its stop token may run on after that on a detached thread, which touches only
/// state that it shares; what the handler itself refers to must live as long.
class COMMITQ_EXPORT Worker {
public:
    /// Checks the options; connects to nothing.
    /// @throws Error `invalid_argument`, naming the option.
    Worker(ConnectOptions connection, WorkerOptions options);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    /// As `stop(0s)`, never throws.
    ~Worker();

    /// Registers the handler of a job type. Jobs of types that no worker knows stay pending and use up no attempt.
    /// @param type 1-128 printable ASCII characters without blanks.
    /// @param handler see `Handler`.
    /// @param options see `HandlerOptions`.
    /// @throws Error `invalid_argument` for a bad name or option or a second handler for the type, `wrong_state` once
    ///         started.
    Worker& on(std::string type, Handler handler, HandlerOptions options = {});

    /// Lets `queue.notify()` wake this worker. May be called before or after `start`.
    Worker& follow(const Queue& queue);

    /// Connects, checks that the server honours SKIP LOCKED and that the schema fits, and starts the threads.
    /// @throws Error `invalid_argument` without handlers, `wrong_state` when already started, `schema_*`,
    ///         `unsupported_server`, `access_denied`, `tls_failed`, `connection_lost`. Then nothing runs.
    void start();

    /// Starts a claim at once. Thread-safe, never throws.
    void wake() noexcept;

    /// How the worker is doing. Asks nothing of the server. Thread-safe; no loop is alive after `stop`, and none is
    /// listed before `start`.
    [[nodiscard]] WorkerHealth health() const;

    /// Stops: claims nothing more, releases what has not started, and waits for running handlers; leases are renewed
    /// and results written all the while. When a third of @p deadline is left, their stop tokens fire (`shutdown`);
    /// what runs on after the deadline is left to a reaper. Returns within @p deadline and about a second, whatever
    /// handlers and server do. Calling it again, or before `start`, does nothing.
    /// @param deadline 0 or more; 0 fires the stop tokens at once and does not wait.
    StopReport stop(std::chrono::milliseconds deadline);

    /// Claims one batch and runs it on the calling thread, job after job: for tests and for cron. Leases are renewed
    /// between handlers, so a single one must not outlast the lease; handler timeouts don't fire. Not once started.
    /// @returns how many jobs were run; 0 when none was due.
    /// @throws Error what `start` throws, and errors of claiming and completing.
    std::size_t run_once();

private:
    friend Outcome testing::perform(Worker&, std::string_view, std::string_view, const EnqueueOptions&);
    Outcome perform(std::string_view type, std::string_view payload, const EnqueueOptions& options);

    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace commitq
