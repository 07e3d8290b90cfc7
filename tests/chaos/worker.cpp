// A process that works, with handlers that behave and some that don't. It also watches the worker's own health.
#include "chaos/dice.h"
#include "chaos/plan.h"
#include "chaos/traffic.h"
#include "support/child.h"
#include "support/invariants.h"

#include <fmt/format.h>

#include <condition_variable>
#include <ctime>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace commitq::chaos {
namespace {

using namespace std::chrono_literals;
using test::Connection;

/// One for each handler thread; made anew after an error.
class OwnConnection {
public:
    template <class Use>
    auto use(const ConnectOptions& options, Use use) {
        try {
            if (!db_) {
                db_ = std::make_unique<Connection>(options);
            }
            return use(*db_);
        } catch (...) {
            db_.reset();
            throw;
        }
    }

private:
    std::unique_ptr<Connection> db_{};
};

thread_local OwnConnection t_connection;

/// What the handlers share.
class Handlers {
public:
    Handlers(ConnectOptions options, Dice dice) : options_{std::move(options)}, seeds_{dice} {}

    void add_to(Worker& worker, const std::shared_ptr<Handlers>& self) {
        const auto on = [&](std::string_view type, auto act, HandlerOptions options = {}) {
            worker.on(
                std::string{type}, [self, act](JobContext& job) { return self->handle(job, act); }, options);
        };
        on("plain", [](Handlers&, JobContext&, Dice& dice) {
            std::this_thread::sleep_for(dice.between(0, 4) * 1ms);
            return Outcome::done();
        });
        on("throws", throws);
        on("always_throws", [](Handlers&, JobContext&, Dice&) -> Outcome { throw std::runtime_error{"always"}; });
        on("snoozes", [](Handlers&, JobContext&, Dice& dice) {
            return dice.once_in(2) ? Outcome::done() : Outcome::snooze(dice.between(0, 800) * 1ms);
        });
        on("cancels", [](Handlers&, JobContext&, Dice&) { return Outcome::cancel("not wanted"); });
        on("gives_up", [](Handlers&, JobContext&, Dice&) { return Outcome::dead("hopeless"); });
        on("hangs",
           [](Handlers&, JobContext& job, Dice& dice) {
               return wait_for_stop(job, 30s) && dice.once_in(2) ? Outcome::retry("hung") : Outcome::done();
           },
           {.timeout = 400ms});
        on("takes_long", [](Handlers&, JobContext& job, Dice& dice) {
            return wait_for_stop(job, dice.between(500, 5'000) * 1ms) ? Outcome::retry("stopped") : Outcome::done();
        });
        on("ignores_stop", [](Handlers&, JobContext&, Dice& dice) {
            std::this_thread::sleep_for(dice.between(500, 5'000) * 1ms);
            return Outcome::done();
        });
        worker.on("brief", [self](JobContext& job) { return self->handle_brief(job); });
        worker.on("effect", [self](JobContext& job) { return self->handle_effect(job); });
    }

private:
    static Outcome throws(Handlers&, JobContext& job, Dice& dice) {
        if (job.attempt() == 1 || dice.once_in(3)) {
            dice.once_in(3) ? throw 42 : throw std::runtime_error{"no luck"};
        }
        return dice.once_in(3) ? Outcome::retry("not yet") : Outcome::done();
    }

    /// @returns false when @p longest is over first.
    static bool wait_for_stop(JobContext& job, std::chrono::milliseconds longest) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock{mutex};
        stopped.wait_for(lock, job.stop_token(), longest, [] { return false; });
        return job.stop_token().stop_requested();
    }

    template <class Act>
    Outcome handle(JobContext& job, Act act) {
        const std::uint64_t run = begin(job);
        const Outcome outcome = act(*this, job, own_dice());
        t_connection.use(options_, [&](Connection& db) { db.run(test::end_run_sql(run)); });
        return outcome;
    }

    Outcome handle_brief(JobContext& job) {
        const auto began = std::chrono::system_clock::now();
        t_connection.use(options_, [&](Connection& db) {
            test::write_run(db, job, began);
            check_payload(db, job);
        });
        return Outcome::done();
    }

    Outcome handle_effect(JobContext& job) {
        const std::uint64_t run = begin(job);
        Dice& dice = own_dice();
        return dice.once_in(4) ? effect_on_own_connection(job, run, dice) : effect(job, run, dice);
    }

    static Outcome effect(JobContext& job, std::uint64_t run, Dice& dice) {
        auto tx = job.begin();
        tx.execute(test::effect_sql(job));
        tx.execute(test::end_run_sql(run));
        job.complete_in(tx);
        std::this_thread::sleep_for(dice.once_in(20) ? dice.between(0, 400) * 1ms : 0ms);
        if (dice.once_in(20)) {
            throw std::runtime_error{"before the commit"};
        }
        if (dice.once_in(20)) {
            return Outcome::done();  // which is not true: the transaction is rolled back
        }
        tx.commit();
        return dice.once_in(20) ? Outcome::retry("too late: it is completed") : Outcome::done();
    }

    Outcome effect_on_own_connection(JobContext& job, std::uint64_t run, Dice& dice) {
        return t_connection.use(options_, [&](Connection& db) {
            db.run("START TRANSACTION");
            db.run(test::effect_sql(job));
            db.run(test::end_run_sql(run));
            job.complete_in(db);
            db.run(dice.once_in(10) ? "ROLLBACK" : "COMMIT");
            return Outcome::done();
        });
    }

    /// Before everything else.
    std::uint64_t begin(JobContext& job) {
        const auto began = std::chrono::system_clock::now();
        return t_connection.use(options_, [&](Connection& db) {
            const std::uint64_t run = test::begin_run(db, job, began);
            check_payload(db, job);
            return run;
        });
    }

    static void check_payload(Connection& db, const JobContext& job) {
        if (!is_genuine(job.payload())) {
            db.run(test::complain_sql(job.id(), "the handler got another payload"));
        }
    }

    Dice& own_dice() {
        thread_local Dice dice = [this] {
            const std::scoped_lock lock{mutex_};
            return Dice{seeds_.next()};
        }();
        return dice;
    }

    ConnectOptions options_;
    std::mutex mutex_{};
    Dice seeds_;
};

/// Says what is wrong with a started worker, whatever the server does: its loops run, and say what they wait for.
std::string unhealthy(const WorkerHealth& health) {
    if (!health.started || health.loops.size() != 5) {
        return fmt::format("started {}, {} loops", health.started, health.loops.size());
    }
    for (const LoopHealth& loop : health.loops) {
        if (!loop.alive || loop.waits_for.empty()) {
            return fmt::format("loop {} is {}, waits for '{}'", loop.name, loop.alive ? "alive" : "dead",
                               loop.waits_for);
        }
    }
    return {};
}

bool recovered(const WorkerHealth& health) { return health.connected && health.consecutive_errors == 0; }

/// As `unhealthy`, once all faults are over and all work is done.
std::string not_recovered(const Worker& worker) {
    if (test::eventually([&] { return recovered(worker.health()) && worker.health().held == 0; })) {
        return {};
    }
    const WorkerHealth health = worker.health();
    std::string text = fmt::format("not recovered, {} jobs held", health.held);
    for (const LoopHealth& loop : health.loops) {
        text += fmt::format("; {}: {} errors, connected {}, waits for {}", loop.name, loop.consecutive_errors,
                            loop.connected, loop.waits_for);
    }
    return text;
}

void print_violation(std::string_view text) {
    fmt::print("violation: {}\n", text);
    std::fflush(stdout);
}

/// Tries until the server is there, as a service does that its supervisor starts again and again.
/// @returns false when told to stop meanwhile.
bool start(Worker& worker, const sigset_t& signals) {
    const timespec soon{.tv_sec = 0, .tv_nsec = 200'000'000};
    for (;;) {
        try {
            worker.start();
            return true;
        } catch (const Error&) {
            if (sigtimedwait(&signals, nullptr, &soon) > 0) {
                return false;
            }
        }
    }
}

/// Arguments: URL, seed, number, which start this is. SIGTERM stops it as a restart does, SIGUSR1 at the end of all.
/// Prints a line for each violation.
int work(const test::ChildArguments& arguments) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    const auto options = ConnectOptions::from_url(arguments.at(0));
    const auto number = [&](std::size_t i) { return std::stoull(arguments.at(i)); };
    Dice dice{number(1), {200 + number(2), number(3)}};
    const auto handlers = std::make_shared<Handlers>(options, Dice{dice.next()});
    Worker worker{options,
                  {.queues = {std::string{kQueues[0]}, std::string{kQueues[1]}},
                   .concurrency = 16,
                   .lease = kLease,
                   .retry = RetryPolicy::exponential(100ms, 2.0, 2s)}};
    handlers->add_to(worker, handlers);
    if (!start(worker, signals)) {
        return 0;
    }
    const timespec soon{.tv_sec = 0, .tv_nsec = 50'000'000};
    int signal = -1;
    while (signal <= 0) {
        signal = sigtimedwait(&signals, nullptr, &soon);
        if (const std::string found = unhealthy(worker.health()); !found.empty()) {
            print_violation(found);
            return 0;
        }
    }
    const bool last = signal == SIGUSR1;
    if (const std::string found = last ? not_recovered(worker) : ""; !found.empty()) {
        print_violation(found);
    }
    const StopReport report = worker.stop(last ? 30s : std::chrono::milliseconds{dice.between(0, 4'000)});
    if (last && !report.clean) {
        print_violation(fmt::format("not stopped cleanly although nothing was wrong: {} abandoned", report.abandoned));
    }
    return 0;
}
const test::ChildRole kWork{"work", work};

}  // namespace
}  // namespace commitq::chaos
