#include <commitq/reaper.h>
#include <commitq/schema.h>
#include <core/backoff.h>
#include <core/names.h>
#include <core/options.h>
#include <core/random.h>
#include <core/thread_pack.h>
#include <mysql/link.h>
#include <spdlog/logger.h>
#include <store/reap.h>
#include <store/registry.h>
#include <store/schema.h>
#include <store/tables.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace commitq {

using core::Clock;
using namespace std::chrono_literals;

struct Reaper::Impl {
    Impl(ConnectOptions connect_options, ReaperOptions reaper_options)
        : options{std::move(reaper_options)}, tables{options.prefix}, link{std::move(connect_options)} {}

    /// All batches of expired jobs there are. Ends early when stopping.
    ReapReport pass();
    void loop() noexcept;
    /// One round of the loop: connects, and reaps if it is this process's turn and not too early.
    void round();
    bool wait(Clock::duration time);
    [[nodiscard]] bool stopping();
    void report(const Error& error) const noexcept;

    const ReaperOptions options;
    const store::Tables tables;
    mysql::Link link;
    core::ThreadPack threads{};
    pid_t started_by = 0;

    Clock::time_point not_before{};  ///< Grace: live workers renew first.
    bool connected_before = false;

    core::Mutex mutex{};
    std::condition_variable changed{};
    bool stop GUARDED_BY(mutex) = false;
};

ReapReport Reaper::Impl::pass() {
    const auto queues = store::list_queues(link.session(), tables);
    ReapReport total;
    for (;;) {
        const ReapReport batch = store::reap(link.session(), tables, queues, options.batch);
        total.returned += batch.returned;
        total.dead += batch.dead;
        if (batch.returned + batch.dead == 0 || stopping()) {
            return total;
        }
    }
}

void Reaper::Impl::round() {
    mysql::Session& session = link.session();
    if (link.came_back()) {
        not_before = Clock::now() + options.grace;
    } else if (!std::exchange(connected_before, true)) {
        const auto up = store::uptime(session);  // the server just came up: the workers' connections were away too
        not_before = Clock::now() + std::max<Clock::duration>(options.grace - up, 0s);
    }
    if (Clock::now() < not_before || !store::take_duty(session, tables, "reap", options.interval)) {
        return;
    }
    const ReapReport report = pass();
    if (report.returned + report.dead == 0) {
        return;
    }
    if (options.logger) {
        try {
            options.logger->info("commitq: reaped {} expired jobs, {} of them dead", report.returned + report.dead,
                                 report.dead);
        } catch (...) {  // a logger that throws must not end the loop
        }
    }
    if (options.observer) {
        options.observer->on_reaped(report.returned, report.dead);
    }
}

void Reaper::Impl::loop() noexcept {
    const mysql::ThreadScope thread;
    core::Random random;
    core::Backoff backoff{100ms, 5s};
    const auto unexpected = [&](const char* what) {
        const Error error{{.operation = "reap", .message = what, .transaction = TransactionState::lost}};
        report(error);
        link.recover(error);
        return backoff.next(random.uniform());
    };
    // Spread over a quarter of the interval, so that the reapers of many workers don't ask all at once.
    std::chrono::microseconds next = std::chrono::duration_cast<std::chrono::microseconds>(options.interval * random.uniform());
    while (wait(next)) {
        try {
            round();
            backoff.reset();
            next = std::chrono::duration_cast<std::chrono::microseconds>(options.interval * (0.75 + 0.5 * random.uniform()));
        } catch (const Error& error) {
            report(error);
            link.recover(error);
            next = backoff.next(random.uniform());
        } catch (const std::exception& error) {
            next = unexpected(error.what());
        } catch (...) {
            next = unexpected("unknown exception");
        }
    }
}

bool Reaper::Impl::wait(Clock::duration time) {
    const auto end = Clock::now() + time;
    core::MutexLock lock{mutex};
    while (!stop && Clock::now() < end) {
        lock.wait_until(changed, end);
    }
    return !stop;
}

bool Reaper::Impl::stopping() {
    const core::MutexLock lock{mutex};
    return stop;
}

void Reaper::Impl::report(const Error& error) const noexcept {
    if (options.logger) {
        try {
            options.logger->warn("commitq reap: {}", error.what());
        } catch (...) {  // see round
        }
    }
    if (options.observer) {
        options.observer->on_error("reap", error);
    }
}

Reaper::Reaper(ConnectOptions connection, ReaperOptions options) {
    connection.validate();
    core::validate(options);
    if (connection.database.empty()) {
        throw core::invalid("reaper", "the connection names no database");
    }
    impl_ = std::make_shared<Impl>(std::move(connection), std::move(options));
}

Reaper::~Reaper() {
    if (impl_->started_by != 0 && impl_->started_by != getpid()) {
        new std::shared_ptr<Impl>{std::move(impl_)};  // NOLINT: a forked child, see ~Worker
        return;
    }
    stop();
}

void Reaper::start() {
    if (impl_->started_by != 0) {
        throw Error{{.code = Errc::wrong_state,
                     .operation = "reaper start",
                     .message = "this reaper was started before",
                     .transaction = TransactionState::none}};
    }
    const mysql::ThreadScope thread;
    store::check_version(impl_->link.session().client(), impl_->tables, Schema::kVersion, "reaper start");
    impl_->threads.spawn("commitq-reap", [impl = impl_] { impl->loop(); });
    impl_->started_by = getpid();
}

void Reaper::stop() noexcept {
    if (impl_->started_by != getpid()) {
        return;
    }
    {
        const core::MutexLock lock{impl_->mutex};
        impl_->stop = true;
        impl_->changed.notify_all();
    }
    constexpr auto kPatience = 300ms;
    if (!impl_->threads.wait_until(Clock::now() + kPatience)) {
        impl_->link.interrupt();  // it waits for the server
        impl_->threads.wait_until(Clock::now() + kPatience);
    }
}

ReapReport Reaper::reap_once() {
    if (impl_->started_by != 0) {
        throw Error{{.code = Errc::wrong_state,
                     .operation = "reap_once",
                     .message = "this reaper was started",
                     .transaction = TransactionState::none}};
    }
    const mysql::ThreadScope thread;
    try {
        store::check_version(impl_->link.session().client(), impl_->tables, Schema::kVersion, "reap_once");
        return impl_->pass();
    } catch (const Error& error) {
        impl_->link.recover(error);
        throw;
    }
}

}  // namespace commitq
