#include <commitq/schema.h>
#include <core/headers.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/logger.h>
#include <store/schema.h>
#include <unistd.h>
#include <worker/engine.h>

#include <array>
#include <utility>

namespace commitq::worker {
namespace {

store::Claimant claimant_of(const core::Token& owner, const WorkerOptions& options, const Handlers& handlers) {
    std::vector<std::pair<std::string, int>> types;
    for (const auto& [type, registered] : handlers) {
        types.emplace_back(type, registered->max_attempts);
    }
    return store::make_claimant(owner, options.lease, types);
}

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    std::string text{name.data()};
    for (char& character : text) {
        if (character <= ' ' || character > '~') {
            character = '?';
        }
    }
    return text;
}

}  // namespace

std::shared_ptr<mysql::Session> SessionPool::take(bool fresh) {
    std::vector<std::unique_ptr<mysql::Session>> dead;  // closed without the lock
    std::unique_ptr<mysql::Session> session;
    {
        const core::MutexLock lock{mutex_};
        if (fresh) {
            dead.swap(idle_);
        } else if (!idle_.empty()) {
            session = std::move(idle_.back());
            idle_.pop_back();
        }
    }
    if (!session) {
        session = std::make_unique<mysql::Session>(options_, mysql::Purpose::handler);
    }
    return {session.release(), [pool = weak_from_this()](mysql::Session* used) {
                std::unique_ptr<mysql::Session> owned{used};
                if (const auto alive = pool.lock(); alive && owned->usable()) {
                    alive->give_back(std::move(owned));
                }
            }};
}

void SessionPool::give_back(std::unique_ptr<mysql::Session> session) noexcept {
    const core::MutexLock lock{mutex_};
    idle_.push_back(std::move(session));
}

Engine::Engine(const ConnectOptions& connect_options, const WorkerOptions& worker_options, Handlers registered)
    : connection{connect_options},
      options{worker_options},
      tables{options.prefix, connection.database},
      handlers{std::move(registered)},
      owner{core::make_token()},
      claimant{claimant_of(owner, options, handlers)},
      board{{.concurrency = options.concurrency,
             .batch = options.batch,
             .prefetch = options.prefetch,
             .lease = options.lease}},
      claim_link{connection},
      complete_link{connection},
      heartbeat_link{connection},
      sessions{std::make_shared<SessionPool>(connection)},
      services{std::make_shared<const Services>(
          Services{.tables = tables, .owner = owner, .open_session = [pool = sessions](bool fresh) {
                       return pool->take(fresh);
                   }})} {}

void Engine::prepare() {
    mysql::Session& claim = claim_link.session();
    store::check_version(claim.client(), tables, Schema::kVersion, "start");
    store::probe_skip_locked(claim, complete_link.session(), tables);
    heartbeat_link.session().execute_all(store::register_queues_sql(tables, options.queues) + ";" +
                                             store::upsert_worker_sql(tables, row()) + ";" +
                                             store::forget_workers_sql(tables),
                                         "start");
}

void Engine::prepare_inline() {
    mysql::Session& session = claim_link.session();
    store::check_version(session.client(), tables, Schema::kVersion, "run_once");
    session.execute(store::register_queues_sql(tables, options.queues), "run_once");
}

std::shared_ptr<Run> Engine::make_run(store::ClaimedJob job) const {
    auto registered = handlers.find(job.type)->second;  // the claim takes known types only
    auto run = std::make_shared<Run>(std::move(job), std::move(registered), services);
    if (!run->job.headers.empty()) {
        run->headers = core::decode_headers(run->job.headers);
    }
    return run;
}

WorkerHealth Engine::health() {
    WorkerHealth health = board.health();
    health.loops = {claim_pulse.health(), complete_pulse.health(), heartbeat_pulse.health(), watch_pulse.health()};
    health.since_claim = health.loops[0].since_success;
    health.since_heartbeat = health.loops[2].since_success;
    return health;
}

store::WorkerRow Engine::row() {
    return {.token = owner,
            .host = host_name(),
            .pid = getpid(),
            .queues = fmt::format("{}", fmt::join(options.queues, ",")),
            .lease = options.lease,
            .held = board.held(),
            .completed = completed.load(),
            .failed = failed.load()};
}

// ----------------------------------------------------------------------------------------------- log and observer

namespace {

/// Logs if there is a logger; what a sink throws stays here.
template <class... Args>
void log(const WorkerOptions& options, spdlog::level::level_enum level, fmt::format_string<Args...> text,
         Args&&... args) noexcept {
    if (!options.logger || !options.logger->should_log(level)) {
        return;
    }
    try {
        options.logger->log(level, fmt::format(text, std::forward<Args>(args)...));
    } catch (...) {  // a logger that throws must not end a loop
    }
}

}  // namespace

void Engine::report(std::string_view loop, const Error& error) const noexcept {
    log(options, spdlog::level::warn, "commitq {}: {}", loop, error.what());
    if (options.observer) {
        options.observer->on_error(loop, error);
    }
}

void Engine::tell_claimed(const Run& run) const noexcept {
    log(options, spdlog::level::trace, "commitq: claimed job {} ({})", run.job.id, run.job.type);
    if (options.observer) {
        options.observer->on_claimed(run.event());
    }
}

void Engine::tell_started(const Run& run) const noexcept {
    log(options, spdlog::level::debug, "commitq: job {} ({}) attempt {} of {}", run.job.id, run.job.type,
        run.job.attempt, run.job.max_attempts);
    if (options.observer) {
        options.observer->on_started(run.event());
    }
}

void Engine::tell_lost(const Run& run) const noexcept {
    log(options, spdlog::level::warn, "commitq: job {} ({}) attempt {} lost its lease", run.job.id, run.job.type,
        run.job.attempt);
    if (options.observer) {
        options.observer->on_lease_lost(run.event());
    }
}

void Engine::tell_released(const Run& run) const noexcept {
    log(options, spdlog::level::debug, "commitq: job {} ({}) released", run.job.id, run.job.type);
    if (options.observer) {
        options.observer->on_released(run.event());
    }
}

void Engine::tell_finished(const Run& run, const store::Finish& finish) noexcept {
    using store::Ending;
    JobEvent event = run.event();
    event.reason = finish.error;
    event.delay = finish.delay;
    const bool done = finish.ending == Ending::complete;
    const bool attempt_failed = finish.ending == Ending::retry || finish.ending == Ending::bury;
    completed += done ? 1 : 0;
    failed += attempt_failed ? 1 : 0;
    // The reason is the handler's text and may hold anything: it is in the table, not in the log.
    log(options, finish.ending == Ending::bury ? spdlog::level::err : spdlog::level::debug,
        "commitq: job {} ({}) attempt {} {}", run.job.id, run.job.type, run.job.attempt,
        done                              ? "completed"
        : finish.ending == Ending::retry  ? "failed, to be retried"
        : finish.ending == Ending::bury   ? "failed, dead"
        : finish.ending == Ending::snooze ? "snoozed"
                                          : "cancelled");
    if (!options.observer) {
        return;
    }
    Observer& observer = *options.observer;
    switch (finish.ending) {
        case Ending::complete:
            return observer.on_completed(event);
        case Ending::retry:
            return observer.on_retried(event);
        case Ending::snooze:
            return observer.on_snoozed(event);
        case Ending::bury:
            return observer.on_dead(event);
        case Ending::cancel:
            return observer.on_cancelled(event);
        case Ending::release:
            return observer.on_released(event);
    }
}

}  // namespace commitq::worker
