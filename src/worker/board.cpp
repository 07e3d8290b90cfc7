#include <worker/board.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace commitq::worker {

using core::Clock;
using core::MutexLock;
using namespace std::chrono_literals;

namespace {

/// Results that wait to be written, above which nothing more is claimed: the server can't be reached, or is slow.
constexpr std::size_t kMostUnwritten = 5'000;
/// Prefetched jobs start within this part of the lease, so that no other worker is kept from them for long.
constexpr double kStartWithinLease = 0.1;
/// Weight of the newest handler time in the moving mean.
constexpr double kNewest = 0.1;
/// Payload bytes of ready jobs, above which none are prefetched.
constexpr std::size_t kMostReadyBytes = std::size_t{32} << 20U;
constexpr auto kWatchTick = 100ms;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

// ---------------------------------------------------------------------------------------------------- the claimer

int Board::prefetch_allowed() const {
    if (mean_seconds_ < 0 || ready_bytes_ > kMostReadyBytes) {
        return 0;  // handler times are not known yet, or memory fills up: only what can start at once
    }
    const double startable = limits_.concurrency * kStartWithinLease * seconds(limits_.lease) / (mean_seconds_ + 1e-6);
    return static_cast<int>(std::min<double>(limits_.prefetch, startable));
}

bool Board::too_many_unwritten() const { return results_.size() + put_back_.size() > kMostUnwritten; }

int Board::wanted() const {
    if (too_many_unwritten()) {
        return 0;
    }
    const int idle = std::max(0, limits_.concurrency - running_);
    const int capacity = idle + prefetch_allowed();
    const int ready = static_cast<int>(ready_.size());
    const int room = capacity - ready;
    // Few large claims cost less than many small ones: wait for room for half, unless handlers would stand idle.
    const bool starving = ready < idle;
    const bool worthwhile = room >= std::min(limits_.batch, std::max(1, capacity / 2));
    return starving || worthwhile ? std::min(room, limits_.batch) : 0;
}

void Board::wake_claimer_if_wanted() {
    if (wanted() > 0) {
        claimer_.notify_all();
    }
}

int Board::wait_wanted() {
    MutexLock lock{mutex_};
    for (;;) {
        if (stopping_) {
            return 0;
        }
        if (const int count = wanted(); count > 0) {
            return count;
        }
        lock.wait(claimer_);
    }
}

bool Board::wait_idle(Clock::time_point time) {
    MutexLock lock{mutex_};
    while (!stopping_ && !woken_ && Clock::now() < time) {
        lock.wait_until(claimer_, time);
    }
    return std::exchange(woken_, false);
}

void Board::wake() noexcept {
    {
        const MutexLock lock{mutex_};
        woken_ = true;
    }
    claimer_.notify_all();
}

std::vector<std::shared_ptr<Run>> Board::add(std::vector<std::shared_ptr<Run>> runs, Clock::time_point deadline) {
    const auto startable = std::min(runs.size(), static_cast<std::size_t>(limits_.concurrency));
    Runs lost;
    {
        const MutexLock lock{mutex_};
        for (std::shared_ptr<Run>& run : runs) {
            Entry& entry = held_[run->job.id];
            if (entry.run && entry.phase != Phase::finishing) {  // else its result was written, and is being settled
                mark_lost(entry, lost);
            }
            entry = Entry{.run = run, .deadline = deadline};
            ready_bytes_ += run->job.payload.size();
            ready_.push_back(std::move(run));
        }
    }
    for (std::size_t i = 0; i < startable; ++i) {
        handlers_.notify_one();  // not all of them for one job
    }
    watch_.notify_all();
    for (const auto& run : lost) {
        run->request_stop(StopReason::lease_lost);
    }
    return lost;
}

std::vector<JobId> Board::not_to_claim() {
    const MutexLock lock{mutex_};
    std::vector<JobId> ids;
    for (const auto& [id, entry] : held_) {
        if (entry.lost || entry.snoozing) {
            ids.push_back(id);
        }
    }
    return ids;
}

std::vector<std::shared_ptr<Run>> Board::take_ready() {
    const MutexLock lock{mutex_};
    Runs runs{ready_.begin(), ready_.end()};
    ready_.clear();
    ready_bytes_ = 0;
    return runs;
}

// ------------------------------------------------------------------------------------------------ handler threads

std::shared_ptr<Run> Board::take() {
    MutexLock lock{mutex_};
    while (!stopping_) {
        if (std::shared_ptr<Run> run = pop_ready()) {
            return run;
        }
        lock.wait(handlers_);
    }
    return nullptr;
}

std::shared_ptr<Run> Board::take_now() {
    const MutexLock lock{mutex_};
    return pop_ready();
}

std::shared_ptr<Run> Board::pop_ready() {
    const auto now = Clock::now();
    for (auto next = ready_.begin(); next != ready_.end();) {
        Entry* entry = find(**next);
        if (entry == nullptr) {
            next = erase_ready(next);  // claimed again since
            wake_claimer_if_wanted();
            continue;
        }
        if (entry->deadline <= now) {
            ++next;
            continue;
        }
        std::shared_ptr<Run> run = *next;
        erase_ready(next);
        entry->phase = Phase::running;
        entry->started = now;
        ++running_;
        wake_claimer_if_wanted();
        return run;
    }
    return nullptr;
}

void Board::finished(Finished result) {
    const MutexLock lock{mutex_};
    --running_;
    if (Entry* entry = find(*result.run); entry != nullptr) {
        const double took = seconds(Clock::now() - entry->started);
        mean_seconds_ = mean_seconds_ < 0 ? took : mean_seconds_ + kNewest * (took - mean_seconds_);
        entry->phase = Phase::finishing;
        entry->snoozing = result.outcome.kind() == Outcome::Kind::snooze;
        if (results_.empty()) {
            oldest_result_ = Clock::now();
        }
        results_.push_back(std::move(result));
        const bool quiet = running_ == 0 && ready_.empty();
        if (results_.size() == 1 || quiet || results_.size() % static_cast<std::size_t>(limits_.batch) == 0) {
            completer_.notify_all();
        }
    }
    wake_claimer_if_wanted();
}

// -------------------------------------------------------------------------------------------------- the completer

void Board::collect_put_back(Clock::time_point now) {
    const auto due = std::stable_partition(put_back_.begin(), put_back_.end(),
                                           [&](const Waiting& waiting) { return waiting.not_before > now; });
    for (auto waiting = due; waiting != put_back_.end(); ++waiting) {
        if (results_.empty()) {
            oldest_result_ = now;
        }
        results_.push_back(std::move(waiting->result));
    }
    put_back_.erase(due, put_back_.end());
}

std::vector<Finished> Board::collect(std::size_t most, Clock::duration linger) {
    MutexLock lock{mutex_};
    for (;;) {
        const auto now = Clock::now();
        collect_put_back(now);
        const bool quiet = running_ == 0 && ready_.empty();
        if (!results_.empty() &&
            (results_.size() >= most || quiet || completer_closed_ || now - oldest_result_ >= linger)) {
            const bool was_full = too_many_unwritten();
            std::vector<Finished> batch;
            while (!results_.empty() && batch.size() < most) {
                batch.push_back(std::move(results_.front()));
                results_.pop_front();
            }
            oldest_result_ = now;
            if (was_full) {
                wake_claimer_if_wanted();  // handlers may all be idle by now: nobody else would
            }
            return batch;
        }
        if (results_.empty() && completer_closed_) {
            return {};
        }
        if (!results_.empty()) {
            lock.wait_until(completer_, oldest_result_ + linger);
        } else if (!put_back_.empty()) {
            lock.wait_until(completer_, now + kWatchTick);
        } else {
            lock.wait(completer_);
        }
    }
}

bool Board::settle(const std::shared_ptr<Run>& run) {
    const MutexLock lock{mutex_};
    const Entry* entry = find(*run);
    if (entry == nullptr) {
        return false;
    }
    const bool was_good = !entry->lost;
    held_.erase(run->job.id);
    if (held_.empty()) {
        drained_.notify_all();
    }
    return was_good;
}

bool Board::wait_closing(Clock::time_point time) {
    MutexLock lock{mutex_};
    while (!completer_closed_ && Clock::now() < time) {
        lock.wait_until(completer_, time);
    }
    return !completer_closed_;
}

void Board::put_back(Finished result, Clock::duration delay) {
    const MutexLock lock{mutex_};
    put_back_.push_back({.result = std::move(result), .not_before = Clock::now() + delay});
}

// ------------------------------------------------------------------------------------------- heartbeat and watch

std::vector<std::shared_ptr<Run>> Board::renewable() {
    const MutexLock lock{mutex_};
    Runs runs;
    runs.reserve(held_.size());
    for (const auto& [id, entry] : held_) {
        if (!entry.gone) {
            runs.push_back(entry.run);
        }
    }
    return runs;
}

void Board::renewed(std::span<const std::shared_ptr<Run>> runs, Clock::time_point deadline) {
    const MutexLock lock{mutex_};
    for (const auto& run : runs) {
        if (Entry* entry = find(*run)) {
            entry->deadline = std::max(entry->deadline, deadline);
        }
    }
    if (!ready_.empty()) {
        handlers_.notify_all();  // one that was passed over may be started after all
    }
}

std::vector<std::shared_ptr<Run>> Board::lost(std::span<const std::shared_ptr<Run>> runs) {
    Runs lost;
    {
        const MutexLock lock{mutex_};
        for (const auto& run : runs) {
            Entry* entry = find(*run);
            if (entry == nullptr || entry->phase == Phase::finishing) {
                continue;  // settled meanwhile, or just being written: the fence knows better
            }
            entry->gone = true;
            mark_lost(*entry, lost);
        }
        forget_lost_ready();
    }
    for (const auto& run : lost) {
        run->request_stop(StopReason::lease_lost);
    }
    return lost;
}

std::vector<std::shared_ptr<Run>> Board::watch(Clock::time_point now) {
    Runs lost;
    Runs overdue;
    {
        const MutexLock lock{mutex_};
        for (auto& [id, entry] : held_) {
            if (entry.phase != Phase::finishing && entry.deadline <= now) {
                mark_lost(entry, lost);
            }
            const auto timeout = entry.run->handler->timeout;
            if (entry.phase == Phase::running && timeout > 0ms && now - entry.started >= timeout) {
                overdue.push_back(entry.run);
            }
        }
        forget_lost_ready();
    }
    for (const auto& run : lost) {
        run->request_stop(StopReason::lease_lost);
    }
    for (const auto& run : overdue) {
        run->request_stop(StopReason::timeout);
    }
    return lost;
}

void Board::mark_lost(Entry& entry, Runs& lost) {
    if (!std::exchange(entry.lost, true)) {
        lost.push_back(entry.run);
    }
}

/// Ready jobs whose lease is lost have nothing left to wait for.
void Board::forget_lost_ready() {
    for (auto entry = held_.begin(); entry != held_.end();) {
        if (entry->second.lost && entry->second.phase == Phase::ready) {
            if (const auto ready = std::find(ready_.begin(), ready_.end(), entry->second.run); ready != ready_.end()) {
                erase_ready(ready);
                wake_claimer_if_wanted();
            }
            entry = held_.erase(entry);
        } else {
            ++entry;
        }
    }
    if (held_.empty()) {
        drained_.notify_all();
    }
}

void Board::wait_watch() {
    MutexLock lock{mutex_};
    if (heartbeat_closed_) {
        return;
    }
    if (held_.empty()) {
        lock.wait(watch_);
    } else {
        lock.wait_until(watch_, Clock::now() + kWatchTick);
    }
}

bool Board::wait_heartbeat(Clock::time_point time) {
    MutexLock lock{mutex_};
    while (!heartbeat_closed_ && Clock::now() < time) {
        lock.wait_until(heartbeat_, time);
    }
    return !heartbeat_closed_;
}

// ------------------------------------------------------------------------------------------------------- stopping

void Board::stop_claiming() {
    const MutexLock lock{mutex_};
    stopping_ = true;
    claimer_.notify_all();
    handlers_.notify_all();
}

void Board::close_completer() {
    const MutexLock lock{mutex_};
    completer_closed_ = true;
    completer_.notify_all();
}

void Board::close_heartbeat() {
    const MutexLock lock{mutex_};
    heartbeat_closed_ = true;
    heartbeat_.notify_all();
    watch_.notify_all();
}

bool Board::stopping() {
    const MutexLock lock{mutex_};
    return stopping_;
}

bool Board::closed() {
    const MutexLock lock{mutex_};
    return heartbeat_closed_;
}

bool Board::completer_closed() {
    const MutexLock lock{mutex_};
    return completer_closed_;
}

bool Board::wait_drained(Clock::time_point time) {
    MutexLock lock{mutex_};
    while (!held_.empty()) {
        if (Clock::now() >= time) {
            return false;
        }
        lock.wait_until(drained_, time);
    }
    return true;
}

void Board::stop_running() {
    Runs running;
    {
        const MutexLock lock{mutex_};
        for (const auto& [id, entry] : held_) {
            if (entry.phase == Phase::running) {
                running.push_back(entry.run);
            }
        }
    }
    for (const auto& run : running) {
        run->request_stop(StopReason::shutdown);
    }
}

std::size_t Board::held() {
    const MutexLock lock{mutex_};
    return held_.size();
}

WorkerHealth Board::health() {
    const MutexLock lock{mutex_};
    WorkerHealth health{.started = !stopping_, .held = held_.size(), .running = static_cast<std::size_t>(running_)};
    Clock::time_point first = Clock::time_point::max();  // also of jobs that nobody can take any more
    for (const auto& [id, entry] : held_) {
        first = std::min(first, entry.deadline);
    }
    if (first != Clock::time_point::max()) {
        health.lease_left = std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now());
    }
    return health;
}

// -------------------------------------------------------------------------------------------------------- helpers

Board::Ready::iterator Board::erase_ready(Ready::iterator position) {
    ready_bytes_ -= (*position)->job.payload.size();
    return ready_.erase(position);
}

Board::Entry* Board::find(const Run& run) {
    const auto found = held_.find(run.job.id);
    return found != held_.end() && found->second.run.get() == &run ? &found->second : nullptr;
}

}  // namespace commitq::worker
