#include <commitq/testing.h>
#include <core/names.h>
#include <core/options.h>
#include <fmt/format.h>
#include <unistd.h>
#include <worker/worker_state.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace commitq {
namespace {

using core::Clock;
using namespace std::chrono_literals;

/// After the deadline of `stop`, how long the library's own threads get to see that it is over.
constexpr auto kLastCall = 500ms;

[[noreturn]] void refuse(std::string_view operation, std::string message) {
    throw Error{{.code = Errc::wrong_state,
                 .operation = std::string{operation},
                 .message = std::move(message),
                 .transaction = TransactionState::none}};
}

void refuse_after_fork(pid_t used_by, std::string_view operation) {
    if (used_by != 0 && used_by != getpid()) {
        refuse(operation, "this worker was used before the process forked: make a new one");
    }
}

worker::Registered fill_in(Handler handler, const HandlerOptions& options, const WorkerOptions& defaults) {
    RetryPolicy retry = options.retry.value_or(defaults.retry);
    const int max_attempts = options.max_attempts.value_or(retry.max_attempts().value_or(defaults.max_attempts));
    return {.handler = std::move(handler),
            .retry = std::move(retry),
            .max_attempts = max_attempts,
            .timeout = options.timeout};
}

ReaperOptions reaper_options(const WorkerOptions& options) {
    const auto interval = std::clamp<std::chrono::milliseconds>(options.lease / 4, 200ms, 5s);
    return {.prefix = options.prefix,
            .interval = interval,
            .grace = options.lease,
            .logger = options.logger,
            .observer = options.observer};
}

}  // namespace

void Worker::Impl::wake() noexcept {
    if (used_by.load() != getpid()) {
        return;  // not started, or a forked child, where a lock can be held by a thread that is not there
    }
    const core::MutexLock lock{mutex};
    if (engine) {
        engine->wake();
    }
}

Worker::Worker(ConnectOptions connection, WorkerOptions options) {
    connection.validate();
    core::validate(options);
    if (connection.database.empty()) {
        throw core::invalid("worker", "the connection names no database");
    }
    core::check_schema_name("worker", connection.database);  // its statements name it
    impl_ = std::make_shared<Impl>(std::move(connection), std::move(options));
}

Worker::~Worker() {
    if (impl_->used_by != 0 && impl_->used_by != getpid()) {
        // A forked child: the threads are the parent's, and so are the connections, which a close would end there.
        new std::shared_ptr<Impl>{std::move(impl_)};  // NOLINT: left behind on purpose
        return;
    }
    stop(0s);
}

Worker& Worker::on(std::string type, Handler handler, HandlerOptions options) {
    constexpr std::string_view kOperation = "on";
    if (impl_->started) {
        refuse(kOperation, "handlers must be registered before start");
    }
    core::check_type_name(kOperation, type);
    core::validate(options, type);
    if (!handler) {
        throw core::invalid(kOperation, fmt::format("the handler of {} is empty", type));
    }
    if (impl_->handlers.contains(type)) {
        throw core::invalid(kOperation, fmt::format("there is a handler of {} already", type));
    }
    impl_->handlers.emplace(std::move(type), std::make_shared<const worker::Registered>(
                                                 fill_in(std::move(handler), options, impl_->options)));
    return *this;
}

Worker& Worker::follow(const Queue& queue) {
    queue.follow(impl_);
    return *this;
}

void Worker::wake() noexcept { impl_->wake(); }

namespace {

void require_handlers(const worker::Handlers& handlers, std::string_view operation) {
    if (handlers.empty()) {
        throw core::invalid(operation, "no handlers are registered");
    }
}

void spawn_threads(const std::shared_ptr<worker::Engine>& engine, core::ThreadPack& handlers, core::ThreadPack& loops) {
    const auto spawn = [&](const char* name, core::Pulse& pulse, void (*loop)(worker::Engine&)) {
        loops.spawn(name, [engine, loop, alive = std::make_shared<const core::Pulse::Alive>(pulse)]() mutable {
            loop(*engine);
            alive.reset();
        });
    };
    spawn("commitq-complete", engine->complete_pulse, worker::complete_loop);
    spawn("commitq-beat", engine->heartbeat_pulse, worker::heartbeat_loop);
    spawn("commitq-watch", engine->watch_pulse, worker::watch_loop);
    for (int i = 0; i < engine->options.concurrency; ++i) {
        handlers.spawn("commitq-handler", [engine] { worker::handler_loop(*engine); });
    }
    spawn("commitq-claim", engine->claim_pulse, worker::claim_loop);  // last: what it claims can be run
}

/// Tells every loop that it is over.
void close_all(worker::Engine& engine) {
    engine.board.stop_claiming();
    engine.board.close_completer();
    engine.board.close_heartbeat();
}

/// Removes the row that `prepare` wrote. If it can't, that row is old some day.
void forget(worker::Engine& engine) noexcept {
    try {
        engine.heartbeat_link.session().execute(store::delete_worker_sql(engine.tables, engine.owner), "start");
    } catch (...) {  // what made the start fail is the error to tell
    }
}

}  // namespace

void Worker::start() {
    constexpr std::string_view kOperation = "start";
    refuse_after_fork(impl_->used_by, kOperation);
    if (impl_->started) {
        refuse(kOperation, "this worker was started before");
    }
    require_handlers(impl_->handlers, kOperation);
    const mysql::ThreadScope thread;
    auto engine = std::make_shared<worker::Engine>(impl_->connection, impl_->options, impl_->handlers);
    engine->prepare();
    auto reaper =
        impl_->options.reaper ? std::make_unique<Reaper>(impl_->connection, reaper_options(impl_->options)) : nullptr;
    try {
        if (reaper) {
            reaper->start();  // before there is a claim: a start that fails must not have run a job
        }
        spawn_threads(engine, impl_->handler_threads, impl_->loop_threads);
    } catch (...) {
        close_all(*engine);
        const auto soon = Clock::now() + kLastCall;
        impl_->handler_threads.wait_until(soon);
        if (impl_->loop_threads.wait_until(soon)) {
            forget(*engine);
        }
        try {
            throw;
        } catch (const std::system_error& error) {
            refuse(kOperation, fmt::format("no thread could be started: {}", error.what()));
        }
    }
    impl_->started = true;
    impl_->used_by = getpid();
    const core::MutexLock lock{impl_->mutex};
    impl_->reaper = std::move(reaper);
    impl_->engine = std::move(engine);
}

WorkerHealth Worker::health() const {
    if (impl_->used_by.load() != getpid()) {
        return {};  // see wake
    }
    const core::MutexLock lock{impl_->mutex};
    if (!impl_->engine) {
        return {};
    }
    WorkerHealth health = impl_->engine->health();
    if (impl_->reaper) {
        health.loops.push_back(impl_->reaper->health());
    }
    health.connected = health.started;
    for (const LoopHealth& loop : health.loops) {
        health.connected = health.connected && loop.connected;
        health.consecutive_errors = std::max(health.consecutive_errors, loop.consecutive_errors);
    }
    return health;
}

StopReport Worker::stop(std::chrono::milliseconds deadline) {
    if (!impl_->started || impl_->used_by != getpid() || std::exchange(impl_->stopped, true)) {
        return {};
    }
    std::shared_ptr<worker::Engine> engine;
    {
        const core::MutexLock lock{impl_->mutex};
        engine = impl_->engine;
    }
    const auto began = Clock::now();
    const auto limit = std::max<std::chrono::milliseconds>(deadline, 0ms);
    const auto end = began + limit;
    const std::uint64_t completed_before = engine->completed.load();
    if (impl_->reaper) {
        impl_->reaper->stop();
    }

    // Claiming stops first, renewing last: whatever still runs keeps its lease.
    engine->board.stop_claiming();
    if (!engine->board.wait_drained(end - limit / 3)) {
        engine->board.stop_running();
        engine->board.wait_drained(end);
    }
    engine->board.close_completer();
    engine->board.close_heartbeat();

    // The loops still write the results and release the jobs that are there.
    const auto last_call = std::max(end, Clock::now() + kLastCall);
    bool loops_ended = impl_->loop_threads.wait_until(last_call);
    if (!loops_ended) {  // the server doesn't answer: break the calls that wait for it
        engine->claim_link.interrupt();
        engine->complete_link.interrupt();
        engine->heartbeat_link.interrupt();
        loops_ended = impl_->loop_threads.wait_until(Clock::now() + kLastCall);
    }
    const std::size_t abandoned = engine->board.held() + engine->abandoned.load();
    const bool handlers_ended = impl_->handler_threads.wait_until(abandoned == 0 ? last_call : Clock::now());
    return {.completed = engine->completed.load() - completed_before,
            .released = engine->released.load(),
            .abandoned = abandoned,
            .clean = abandoned == 0 && handlers_ended && loops_ended};
}

std::size_t Worker::run_once() {
    constexpr std::string_view kOperation = "run_once";
    refuse_after_fork(impl_->used_by, kOperation);
    if (impl_->started) {
        refuse(kOperation, "this worker was started");
    }
    require_handlers(impl_->handlers, kOperation);
    const mysql::ThreadScope thread;
    if (!impl_->inline_engine) {
        auto fresh = std::make_shared<worker::Engine>(impl_->connection, impl_->options, impl_->handlers);
        fresh->prepare_inline();
        impl_->inline_engine = std::move(fresh);
        impl_->used_by = getpid();
    }
    return worker::run_inline(*impl_->inline_engine);
}

Outcome testing::perform(Worker& worker, std::string_view type, std::string_view payload,
                         const EnqueueOptions& options) {
    return worker.perform(type, payload, options);
}

std::size_t testing::drain(Worker& worker) {
    std::size_t count = 0;
    while (const std::size_t ran = worker.run_once()) {
        count += ran;
    }
    return count;
}

Outcome Worker::perform(std::string_view type, std::string_view payload, const EnqueueOptions& options) {
    const auto found = impl_->handlers.find(type);
    if (found == impl_->handlers.end()) {
        throw core::invalid("perform", "there is no handler of this type");
    }
    const auto without_database =
        std::make_shared<const worker::Services>(worker::Services{.tables = store::Tables{impl_->options.prefix}});
    worker::Run run{{.id = 1,
                     .queue = impl_->options.queues.front(),
                     .type = std::string{type},
                     .priority = options.priority,
                     .attempt = 1,
                     .max_attempts = options.max_attempts.value_or(found->second->max_attempts),
                     .payload = std::string{payload},
                     .created_at = std::chrono::system_clock::now()},
                    found->second,
                    without_database};
    run.headers = options.headers;
    return worker::run_handler(run);
}

}  // namespace commitq
