// What must hold whatever happens, checked afterwards from what everybody wrote down while it happened.
//
//     Invariants invariants{database};            // tables and a trigger beside commitq's own
//     producer:  the jobs and expect_sql(jobs) in one transaction
//     handler:   begin_run, end_run_sql; effect_sql in the transaction given to complete_in
//     for (const Violation& violation : invariants.violations()) ...
//
// The trigger writes each change of a job's state, attempt, owner or lease to `history`, in the transaction that makes it and
// by the server's clock, so what a worker believes or says plays no part.
#pragma once

#include "support/database.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::test {

/// A rule that does not hold, for one job.
struct Violation {
    std::string text{};  ///< The rule, the job and what was found.
    JobId job = 0;
};

/// The rules, and the tables they are checked on. Beside `history` there are
/// - `expected(job, payload_sha256, effect)`: written by who enqueues, in that same transaction;
/// - `runs(id, job, attempt, account, started_at, ended_at)`: written by handlers;
/// - `effects(job, attempt)`: written by handlers that use complete_in; without a unique key, so that nothing but
///   commitq keeps an effect from happening twice;
/// - `complaints(job, text)`: what a handler saw and should not have;
/// - `freezes(account, since, until)`: when a process was stopped by SIGSTOP. Nothing can keep a handler from starting
///   that was frozen between the last look at its lease and its first instruction; one of a freeze is forgiven.
class Invariants {
public:
    /// Creates tables and trigger. The database must be migrated and have no jobs yet.
    explicit Invariants(Database& database);

    /// All that is broken; up to 1,000 for each rule. Nobody may write meanwhile.
    std::vector<Violation> violations();
    /// What happened to one job, a line each.
    std::string history(JobId job);
    /// How many steps of that kind there were: `claim`, `complete`, `retry`, `snooze`, `release`, `bury`, `cancel`,
    /// `reap`, `reap_dead`. As of the last call of `violations`.
    long steps(std::string_view kind);

    /// What accounts need beside the privileges of docs/operations.md: `GRANT ... ON database.table`.
    [[nodiscard]] std::vector<std::string> producer_grants() const;
    [[nodiscard]] std::vector<std::string> worker_grants() const;

private:
    void number_steps();

    Database& database_;
};

/// A job that a transaction brings.
struct ExpectedJob {
    JobId id = 0;
    std::string_view payload{};
    bool effect = false;  ///< Its handler uses complete_in and writes an effect.
};
std::string expect_sql(std::span<const ExpectedJob> jobs);

/// Writes, in a transaction of its own, that a handler begins. @returns the run's id.
std::uint64_t begin_run(Connection& db, const JobContext& job);
/// As above, where the server is on this machine and shares its clock: however long the statement was on its way.
std::uint64_t begin_run(Connection& db, const JobContext& job, std::chrono::system_clock::time_point began);
/// Beginning and end at once, at the end: for brief handlers.
void write_run(Connection& db, const JobContext& job, std::chrono::system_clock::time_point began);
std::string utc_literal(std::chrono::system_clock::time_point time);
std::string end_run_sql(std::uint64_t run);
std::string effect_sql(const JobContext& job);
std::string complain_sql(JobId job, std::string_view text);

}  // namespace commitq::test
