// What the threads of one started worker share.
#pragma once

#include <commitq/worker.h>
#include <core/pulse.h>
#include <core/random.h>
#include <mysql/link.h>
#include <mysql/session.h>
#include <queue/wakeup.h>
#include <store/claim.h>
#include <store/finish.h>
#include <store/registry.h>
#include <store/tables.h>
#include <worker/board.h>
#include <worker/claim_plan.h>
#include <worker/refusals.h>
#include <worker/run.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::worker {

using Handlers = std::map<std::string, std::shared_ptr<const Registered>, std::less<>>;

/// Connections for `JobContext::begin`, kept for the next handler. Thread-safe.
class SessionPool : public std::enable_shared_from_this<SessionPool> {
public:
    explicit SessionPool(ConnectOptions options) : options_{std::move(options)} {}
    /// A session that comes back to the pool when let go of, unless it broke. Throws Error.
    /// @param fresh a kept one was found dead: drops them all, since they died together, and connects.
    std::shared_ptr<mysql::Session> take(bool fresh);

private:
    void give_back(std::unique_ptr<mysql::Session> session) noexcept;

    ConnectOptions options_;
    core::Mutex mutex_;
    std::vector<std::unique_ptr<mysql::Session>> idle_ GUARDED_BY(mutex_);
};

/// Shared by the worker and its threads; lives as long as the last of them. The loops are functions on it, one file each.
class Engine : public queue::Wakeable {
public:
    Engine(const ConnectOptions& connect_options, const WorkerOptions& worker_options, Handlers registered);

    void wake() noexcept override { board.wake(); }

    /// Connects all loops, checks the server and the schema, and makes the worker known. Throws Error.
    void prepare();
    /// The same on one connection, for `Worker::run_once`.
    void prepare_inline();

    const ConnectOptions connection;
    const WorkerOptions options;
    const store::Tables tables;
    const Handlers handlers;
    const core::Token owner;
    const store::Claimant claimant;
    Board board;
    Refusals refusals;  ///< The claimer's.

    core::Pulse claim_pulse{"claim"};
    core::Pulse complete_pulse{"complete"};
    core::Pulse heartbeat_pulse{"heartbeat"};
    core::Pulse watch_pulse{"watch"};

    mysql::Link claim_link;
    mysql::Link complete_link;
    mysql::Link heartbeat_link;
    std::shared_ptr<SessionPool> sessions;
    std::shared_ptr<const Services> services;

    std::atomic<std::uint64_t> completed{0};
    std::atomic<std::uint64_t> failed{0};
    std::atomic<std::uint64_t> released{0};
    std::atomic<std::uint64_t> abandoned{0};  ///< Not held any more, and not written.

    /// All but what concerns the reaper.
    WorkerHealth health();
    /// A run for a claimed job.
    std::shared_ptr<Run> make_run(store::ClaimedJob job) const;
    /// The worker's row, as it is now.
    store::WorkerRow row();

    // ---- what happened: to the log and the observer; never throws, and never with a lock held
    void report(std::string_view loop, const Error& error) const noexcept;
    void tell_claimed(const Run& run) const noexcept;
    void tell_started(const Run& run) const noexcept;
    void tell_lost(const Run& run) const noexcept;
    void tell_released(const Run& run) const noexcept;
    void tell_finished(const Run& run, const store::Finish& finish) noexcept;
};

// ---- the loops; each ends when the board says so, and none by an error
void claim_loop(Engine& engine) noexcept;
void handler_loop(Engine& engine) noexcept;
void complete_loop(Engine& engine) noexcept;
void heartbeat_loop(Engine& engine) noexcept;
void watch_loop(Engine& engine) noexcept;

// ---- their parts, which `Worker::run_once` uses without threads
/// Runs the handler; whatever it throws becomes an outcome.
Outcome run_handler(Run& run) noexcept;
/// What is to be written for an outcome. @p random is for the retry's jitter.
store::Finish make_finish(const Run& run, const Outcome& outcome, core::Random& random);
/// The same for results: one whose `complete_in` did not commit counts as a failed attempt.
std::vector<store::Finish> make_finishes(const std::vector<Finished>& results, core::Random& random);
/// Writes results once. Throws Error. @returns one entry for each.
std::vector<store::Written> write_results(Engine& engine, mysql::Session& session, const std::vector<Finished>& results,
                                          std::vector<store::Finish>& finishes, bool only_unlocked);
/// Claims up to @p limit jobs from one place, without those that the server refuses to change. Throws Error. @returns none, and
/// `more`, when such a one was found, to be left out by the next call.
store::ClaimResult claim_from(Engine& engine, mysql::Session& session, const ClaimPlan::Target& target, int limit);
/// Claims one batch and runs it on this thread. Throws Error. @returns how many jobs ran.
std::size_t run_inline(Engine& engine);
/// One renewal of all that the board holds. Throws Error. @returns the refusal of a row, after all others were renewed.
std::optional<Error> renew_all(Engine& engine, mysql::Session& session);

}  // namespace commitq::worker
