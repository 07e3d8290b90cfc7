#include <commitq/reaper.h>
#include <commitq/schema.h>
#include <core/backoff.h>
#include <core/names.h>
#include <core/options.h>
#include <core/pulse.h>
#include <core/random.h>
#include <core/thread_pack.h>
#include <mysql/error_map.h>
#include <mysql/link.h>
#include <spdlog/logger.h>
#include <store/reap.h>
#include <store/registry.h>
#include <store/schema.h>
#include <store/tables.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace commitq {

using core::Clock;
using namespace std::chrono_literals;

namespace {

/// Expired jobs whose rows others have locked, above which a pass ends.
constexpr std::size_t kMostPassedOver = 1'000;

}  // namespace

struct Reaper::Impl {
    Impl(ConnectOptions connect_options, ReaperOptions reaper_options)
        : options{std::move(reaper_options)}, tables{options.prefix}, link{std::move(connect_options)} {}

    /// All batches of expired jobs there are. Ends early when stopping.
    /// @param with_grace ends also when the server stands still.
    ReapReport pass(bool with_grace);
    /// One row that can't be changed is reported and passed over, and keeps no other from being reaped.
    store::ReapResult reap_in_halves(std::vector<JobId> expired);
    /// Whether the server, asked something then, took so long that workers' renewals must have waited too: then there is
    /// grace again.
    bool stood_still_since(Clock::time_point asked);
    void loop() noexcept;
    /// One round of the loop: connects, and reaps if it is this process's turn and not too early.
    void round();
    bool wait(Clock::duration time);
    [[nodiscard]] bool stopping();
    void report(const Error& error) const noexcept;

    const ReaperOptions options;
    const store::Tables tables;
    mysql::Link link;
    core::Pulse pulse{"reap"};
    core::ThreadPack threads{};
    std::atomic<pid_t> used_by{0};  ///< The process that has the thread and the connection; a fork has neither.
    bool started = false;

    Clock::time_point not_before{};  ///< Grace: live workers renew first.
    bool connected_before = false;

    core::Mutex mutex{};
    std::condition_variable changed{};
    bool stop GUARDED_BY(mutex) = false;
};

ReapReport Reaper::Impl::pass(bool with_grace) {
    const auto queues = store::list_queues(link.session(), tables);
    ReapReport total;
    std::vector<JobId> passed_over;
    do {
        const auto asked = Clock::now();
        std::vector<JobId> expired = store::find_expired(link.session(), tables, queues, options.batch, passed_over);
        if (expired.empty() || (with_grace && stood_still_since(asked))) {
            break;
        }
        const store::ReapResult batch = reap_in_halves(std::move(expired));
        total.returned += batch.report.returned;
        total.dead += batch.report.dead;
        passed_over.insert(passed_over.end(), batch.passed_over.begin(), batch.passed_over.end());
    } while (passed_over.size() <= kMostPassedOver && !stopping());
    return total;
}

store::ReapResult Reaper::Impl::reap_in_halves(std::vector<JobId> expired) {
    mysql::Session& session = link.session();
    try {
        return store::reap(session, tables, expired);
    } catch (const Error& error) {
        if (!mysql::is_refusal(error)) {
            throw;
        }
        session.rollback("reap");
        if (expired.size() == 1) {
            report(error);
            return {.report = {}, .passed_over = std::move(expired)};
        }
    }
    const auto middle = expired.begin() + static_cast<std::ptrdiff_t>(expired.size() / 2);
    store::ReapResult first = reap_in_halves({expired.begin(), middle});
    const store::ReapResult second = reap_in_halves({middle, expired.end()});
    first.report.returned += second.report.returned;
    first.report.dead += second.report.dead;
    first.passed_over.insert(first.passed_over.end(), second.passed_over.begin(), second.passed_over.end());
    return first;
}

bool Reaper::Impl::stood_still_since(Clock::time_point asked) {
    const auto now = Clock::now();
    if (options.grace == 0ms || now - asked < options.grace / 4) {
        return false;
    }
    not_before = now + options.grace;
    return true;
}

void Reaper::Impl::round() {
    mysql::Session& session = link.session();
    if (link.came_back()) {
        not_before = Clock::now() + options.grace;
    } else if (!std::exchange(connected_before, true)) {
        const auto up = store::uptime(session);  // the server just came up: the workers' connections were away too
        not_before = Clock::now() + std::max<Clock::duration>(options.grace - up, 0s);
    }
    const auto asked = Clock::now();
    if (asked < not_before || !store::take_duty(session, tables, "reap", options.interval) ||
        stood_still_since(asked)) {
        return;
    }
    const ReapReport report = pass(true);
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
    const auto failed = [&](const Error& error) {
        pulse.failed(!mysql::needs_reconnect(error));
        pulse.waits_for("its next try");
        report(error);
        link.recover(error);
        return backoff.next(random.uniform());
    };
    const auto unexpected = [&](const char* what) {
        return failed(Error{{.operation = "reap", .message = what, .transaction = TransactionState::lost}});
    };
    // Spread over a quarter of the interval, so that the reapers of many workers don't ask all at once.
    std::chrono::microseconds next =
        std::chrono::duration_cast<std::chrono::microseconds>(options.interval * random.uniform());
    pulse.waits_for("its interval");
    while (wait(next)) {
        try {
            pulse.waits_for("the server");
            round();
            pulse.succeeded();
            pulse.waits_for("its interval");
            backoff.reset();
            next = std::chrono::duration_cast<std::chrono::microseconds>(options.interval *
                                                                         (0.75 + 0.5 * random.uniform()));
        } catch (const Error& error) {
            next = failed(error);
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
    if (impl_->used_by != 0 && impl_->used_by != getpid()) {
        new std::shared_ptr<Impl>{std::move(impl_)};  // NOLINT: a forked child, see ~Worker
        return;
    }
    stop();
}

namespace {

/// Throws when @p used_by is another process than this one, or when @p started.
void check_unused(std::string_view operation, pid_t used_by, bool started) {
    const bool forked = used_by != 0 && used_by != getpid();
    if (forked || started) {
        throw Error{{.code = Errc::wrong_state,
                     .operation = std::string{operation},
                     .message = forked ? "this reaper was used before the process forked: make a new one"
                                       : "this reaper was started",
                     .transaction = TransactionState::none}};
    }
}

}  // namespace

void Reaper::start() {
    check_unused("reaper start", impl_->used_by, impl_->started);
    impl_->used_by = getpid();
    const mysql::ThreadScope thread;
    store::check_version(impl_->link.session().client(), impl_->tables, Schema::kVersion, "reaper start");
    impl_->threads.spawn("commitq-reap",
                         [impl = impl_, alive = std::make_shared<const core::Pulse::Alive>(impl_->pulse)]() mutable {
                             impl->loop();
                             alive.reset();
                         });
    impl_->started = true;
}

void Reaper::stop() noexcept {
    if (!impl_->started || impl_->used_by != getpid()) {
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

LoopHealth Reaper::health() const {
    const pid_t used_by = impl_->used_by;
    return used_by == 0 || used_by == getpid() ? impl_->pulse.health() : core::Pulse{"reap"}.health();
}

ReapReport Reaper::reap_once() {
    check_unused("reap_once", impl_->used_by, impl_->started);
    impl_->used_by = getpid();
    const mysql::ThreadScope thread;
    try {
        store::check_version(impl_->link.session().client(), impl_->tables, Schema::kVersion, "reap_once");
        return impl_->pass(false);
    } catch (const Error& error) {
        impl_->link.recover(error);
        throw;
    }
}

}  // namespace commitq
