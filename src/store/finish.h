// Writing what became of jobs. Every statement is fenced by (id, owner, attempt): it changes nothing for a job that is
// no longer the worker's.
#pragma once

#include <commitq/queue.h>
#include <core/random.h>
#include <mysql/session.h>
#include <store/tables.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::store {

/// Where a running job goes.
enum class Ending {
    complete,
    retry,   ///< To pending after `delay`.
    snooze,  ///< To pending after `delay`, and the attempt is given back.
    bury,    ///< To dead.
    cancel,
    release,  ///< To pending at once, as if never claimed.
};

struct Finish {
    JobId id = 0;
    int attempt = 0;
    Ending ending = Ending::complete;
    std::chrono::microseconds delay{0};
    std::string error{};  ///< Clean text; empty leaves last_error as it is.
};

/// What became of each.
enum class Written {
    yes,
    lost,       ///< The job was not ours any more; nothing was changed.
    locked,     ///< Another transaction holds the row; try again.
    completed,  ///< The owner has completed it otherwise, inside a handler's transaction; nothing was changed.
};

/// Writes all in one transaction and one round trip; a second one where some were lost, to see which.
/// After an error whose outcome is unknown it may be called again with the same: what was already written is `yes`,
/// since the row keeps the owner and attempt of who finished it.
/// @returns one entry for each of @p jobs.
/// Throws Error.
std::vector<Written> finish(mysql::Session& session, const Tables& tables, const core::Token& owner,
                            std::span<const Finish> jobs);

/// As `finish` for the jobs whose rows nobody has locked just now; for when `finish` met a lock wait timeout.
std::vector<Written> finish_unlocked(mysql::Session& session, const Tables& tables, const core::Token& owner,
                                     std::span<const Finish> jobs);

/// Which of @p jobs the owner has finished, as an earlier transaction of a handler may have: `complete_in`.
std::vector<bool> completed_by(mysql::Session& session, const Tables& tables, const core::Token& owner,
                               std::span<const Finish> jobs);

/// `complete`: all of @p ids, which share an attempt number.
std::string complete_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids, int attempt);
/// `release`: the same, back to pending.
std::string release_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids, int attempt);
/// `retry`, `snooze`, `bury`, `cancel`: one job.
std::string end_sql(const Tables& tables, const core::Token& owner, const Finish& job);
/// `read_back`: id, state, owner matches, attempt.
std::string read_back_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids);
/// `lock_held`: which rows can be locked without waiting.
std::string lock_held_sql(const Tables& tables, std::span<const JobId> ids);

}  // namespace commitq::store
