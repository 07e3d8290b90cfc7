// Observes a worker, and makes threads wait for each other.
#pragma once

#include "support/database.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace commitq::test {

/// An event as the observer got it.
struct Event {
    std::string name{};  ///< `claimed`, `started`, ... as the hook.
    JobId id = 0;
    std::string queue{};
    std::string type{};
    int attempt = 0;
    std::string reason{};
    std::chrono::microseconds wait{0};
    std::chrono::microseconds run{0};
    std::chrono::microseconds delay{0};
};

/// Keeps all events. Thread-safe.
class Recorder : public Observer {
public:
    void on_claimed(const JobEvent& event) noexcept override { keep("claimed", event); }
    void on_started(const JobEvent& event) noexcept override { keep("started", event); }
    void on_completed(const JobEvent& event) noexcept override { keep("completed", event); }
    void on_retried(const JobEvent& event) noexcept override { keep("retried", event); }
    void on_snoozed(const JobEvent& event) noexcept override { keep("snoozed", event); }
    void on_dead(const JobEvent& event) noexcept override { keep("dead", event); }
    void on_cancelled(const JobEvent& event) noexcept override { keep("cancelled", event); }
    void on_released(const JobEvent& event) noexcept override { keep("released", event); }
    void on_lease_lost(const JobEvent& event) noexcept override { keep("lease_lost", event); }
    void on_reaped(std::size_t returned, std::size_t dead) noexcept override;
    void on_error(std::string_view loop, const Error& error) noexcept override;

    /// How many events of that name there were, of one job or of all.
    std::size_t count(std::string_view name, JobId id = 0);
    /// The events of that name; empty name: all.
    std::vector<Event> events(std::string_view name = {});
    /// The names of the events of one job, in order, joined by blanks.
    std::string story(JobId id);
    /// What `on_error` was told by that loop; empty: by all.
    std::vector<Error> errors(std::string_view loop = {});
    /// The errors as text, for messages of assertions.
    std::string error_text();
    /// How many errors of that loop had this number.
    std::size_t errors_with(std::string_view loop, unsigned server_errno);
    std::size_t returned();
    std::size_t dead();

private:
    void keep(std::string_view name, const JobEvent& event);

    std::mutex mutex_;
    std::vector<Event> events_;
    std::vector<std::pair<std::string, Error>> errors_;
    std::size_t returned_ = 0;
    std::size_t dead_ = 0;
};

/// The code of the error that @p call throws; nothing if it throws none.
template <class Call>
std::optional<Errc> code_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return std::nullopt;
}

/// Closed until somebody opens it.
class Gate {
public:
    void open();
    /// @returns false after @p limit, which is generous: a test fails on it, never times by it.
    bool wait(std::chrono::milliseconds limit = 120s);
    [[nodiscard]] bool is_open();

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

/// Counts runs of each job. Thread-safe.
class Runs {
public:
    void add(JobId id) {
        const std::scoped_lock lock{mutex_};
        ++runs_[id];
    }
    int of(JobId id) {
        const std::scoped_lock lock{mutex_};
        return runs_[id];
    }
    std::size_t jobs() {
        const std::scoped_lock lock{mutex_};
        return runs_.size();
    }
    /// The jobs that ran more than once.
    std::vector<JobId> repeated();

private:
    std::mutex mutex_;
    std::map<JobId, int> runs_;
};

/// Lets the leases of all running jobs run out at once, as if their workers had been silent for long.
void expire_leases(Database& database);

/// Ends all connections to the database but `Database::look`'s and the given ones. Any thread.
/// @returns how many.
int kill_connections(Database& database, const std::vector<unsigned long>& but = {});
/// The connections to the database but `Database::look`'s and the given ones. Any thread.
std::vector<unsigned long> connections(Database& database, const std::vector<unsigned long>& but = {});

/// Makes the server refuse changes of jobs' states, by a trigger: each kind of error, at each transition, whenever a test
/// wants it. The server doesn't roll back for these as it does for real ones; commitq doesn't know that.
class Faults {
public:
    explicit Faults(Database& database);
    /// From now on, a job of state @p from that would get state @p to gets this error instead.
    /// @param only one job, or 0 for all.
    void arm(std::string_view from, std::string_view to, unsigned server_errno, JobId only = 0);
    void disarm();

private:
    Database& database_;
};

}  // namespace commitq::test
