// The jobs that a worker holds, and who waits for which of them. The one place where its threads meet.
#pragma once

#include <commitq/health.h>
#include <commitq/outcome.h>
#include <core/clock.h>
#include <core/mutex.h>
#include <worker/run.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace commitq::worker {

/// A run whose handler has returned.
struct Finished {
    std::shared_ptr<Run> run;
    Outcome outcome;
    bool met_lock = false;  ///< Another transaction had the job's row when it was to be written.
};

/// Sizes that the board works by, from `WorkerOptions`.
struct BoardLimits {
    int concurrency;
    int batch;
    int prefetch;
    core::Clock::duration lease;
};

/// A job goes ready -> running -> finishing -> settled. Its lease is renewed until it is settled. A job whose lease is
/// lost is never started. One that runs is told by its stop token, and stays known until its handler returns, so that
/// this process doesn't claim it beside the handler that still runs; its result is written all the same, and the fence
/// decides.
/// Threading: thread-safe. No callback of a user's runs under its lock.
class Board {
public:
    explicit Board(BoardLimits limits) : limits_{limits} {}

    // ---- the claimer
    /// Waits until jobs are wanted; 0 when stopping.
    int wait_wanted();
    /// Waits for @p time, a wake or a stop. @returns whether it was a wake.
    bool wait_idle(core::Clock::time_point time);
    void wake() noexcept;
    /// Adds claimed jobs; they are ready.
    /// @returns older runs of the same jobs, which are lost: the server would not have given us these otherwise.
    std::vector<std::shared_ptr<Run>> add(std::vector<std::shared_ptr<Run>> runs, core::Clock::time_point deadline);
    /// Jobs that must not be claimed just now, see above.
    std::vector<JobId> not_to_claim();
    /// Takes back what is ready and not started, to release it.
    std::vector<std::shared_ptr<Run>> take_ready();

    // ---- handler threads
    /// Waits for a ready job; null when stopping. Passes over jobs whose deadline has passed, since another worker may have
    /// them by now: they wait for a renewal, or for `watch`.
    std::shared_ptr<Run> take();
    /// As `take`, but null when none is ready.
    std::shared_ptr<Run> take_now();
    /// Hands over a handler's result.
    void finished(Finished result);

    // ---- the completer
    /// Waits for results: until @p most are there, or the oldest has waited for @p linger, or nothing else runs that
    /// could add to them. Empty when `close_completer` was called and none are left.
    std::vector<Finished> collect(std::size_t most, core::Clock::duration linger);
    /// The job is settled, one way or another. @returns whether its lease was thought to be good.
    bool settle(const std::shared_ptr<Run>& run);
    /// Waits for @p time or `close_completer`; false when closed.
    bool wait_closing(core::Clock::time_point time);
    /// Puts a result back, to be collected again after @p delay.
    void put_back(Finished result, core::Clock::duration delay);

    // ---- heartbeat and watch
    /// Jobs to renew. Runs and not ids, here and in what follows: the job may have been claimed again by the time that the
    /// server answers, and the answer is about the run before.
    std::vector<std::shared_ptr<Run>> renewable();
    void renewed(std::span<const std::shared_ptr<Run>> runs, core::Clock::time_point deadline);
    /// The server says that these are not ours. @returns those that were thought to be.
    std::vector<std::shared_ptr<Run>> lost(std::span<const std::shared_ptr<Run>> runs);
    /// Drops ready jobs, and signals running ones, whose deadline has passed; fires handler timeouts.
    /// @returns the jobs whose lease is gone.
    std::vector<std::shared_ptr<Run>> watch(core::Clock::time_point now);
    /// Waits until there may be something to watch.
    void wait_watch();
    /// Waits for @p time or `close_heartbeat`; false when closed.
    bool wait_heartbeat(core::Clock::time_point time);

    // ---- stopping
    void stop_claiming();
    void close_completer();
    void close_heartbeat();
    [[nodiscard]] bool stopping();
    [[nodiscard]] bool completer_closed();
    [[nodiscard]] bool closed();
    /// Waits until no handler runs and all results are written. @returns false when @p time came first.
    bool wait_drained(core::Clock::time_point time);
    /// Fires the stop tokens of all that run.
    void stop_running();
    /// The held jobs: those not settled.
    [[nodiscard]] std::size_t held();
    /// What concerns the held jobs.
    [[nodiscard]] WorkerHealth health();

private:
    enum class Phase { ready, running, finishing };
    struct Entry {
        std::shared_ptr<Run> run;
        Phase phase = Phase::ready;
        core::Clock::time_point deadline{};
        core::Clock::time_point started{};
        bool lost = false;      ///< Its deadline passed, or the server said so.
        bool gone = false;      ///< The server said so: not renewed any more.
        bool snoozing = false;  ///< Finishing with a result that gives the attempt number back.
    };
    using Runs = std::vector<std::shared_ptr<Run>>;

    bool too_many_unwritten() const REQUIRES(mutex_);
    int wanted() const REQUIRES(mutex_);
    /// To be called after whatever can make jobs wanted.
    void wake_claimer_if_wanted() REQUIRES(mutex_);
    int prefetch_allowed() const REQUIRES(mutex_);
    Entry* find(const Run& run) REQUIRES(mutex_);
    std::shared_ptr<Run> pop_ready() REQUIRES(mutex_);
    using Ready = std::deque<std::shared_ptr<Run>>;
    Ready::iterator erase_ready(Ready::iterator position) REQUIRES(mutex_);
    void mark_lost(Entry& entry, Runs& lost) REQUIRES(mutex_);
    void forget_lost_ready() REQUIRES(mutex_);
    void collect_put_back(core::Clock::time_point now) REQUIRES(mutex_);

    const BoardLimits limits_;
    core::Mutex mutex_;
    std::condition_variable claimer_;
    std::condition_variable handlers_;
    std::condition_variable completer_;
    std::condition_variable heartbeat_;
    std::condition_variable watch_;
    std::condition_variable drained_;

    struct Waiting {
        Finished result;
        core::Clock::time_point not_before;
    };

    std::unordered_map<JobId, Entry> held_ GUARDED_BY(mutex_);
    Ready ready_ GUARDED_BY(mutex_);
    std::size_t ready_bytes_ GUARDED_BY(mutex_) = 0;  ///< Of their payloads.
    std::deque<Finished> results_ GUARDED_BY(mutex_);
    std::vector<Waiting> put_back_ GUARDED_BY(mutex_);
    core::Clock::time_point oldest_result_ GUARDED_BY(mutex_){};
    int running_ GUARDED_BY(mutex_) = 0;
    double mean_seconds_ GUARDED_BY(mutex_) = -1;  ///< Of handlers, moving; below 0: none has returned yet.
    bool woken_ GUARDED_BY(mutex_) = false;
    bool stopping_ GUARDED_BY(mutex_) = false;
    bool completer_closed_ GUARDED_BY(mutex_) = false;
    bool heartbeat_closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace commitq::worker
