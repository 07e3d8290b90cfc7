#include <commitq/transaction.h>
#include <fmt/format.h>
#include <store/finish.h>
#include <store/sql.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace commitq::store {
namespace {

constexpr std::string_view kComplete = "complete";

std::string fence(const core::Token& owner, int attempt) {
    return fmt::format("state='running' AND owner={} AND attempt={}", token_literal(owner), attempt);
}

std::vector<JobId> ids_of(std::span<const Finish> jobs) {
    std::vector<JobId> ids;
    ids.reserve(jobs.size());
    for (const Finish& job : jobs) {
        ids.push_back(job.id);
    }
    return ids;
}

/// One statement and the jobs that it is for, as indexes.
struct Group {
    std::string sql;
    std::vector<std::size_t> jobs;
};

/// Completions and releases go by attempt number, which is 1 for nearly all; the rest one by one.
std::vector<Group> group(const Tables& tables, const core::Token& owner, std::span<const Finish> jobs) {
    std::map<std::pair<Ending, int>, std::vector<std::size_t>> together;
    std::vector<Group> groups;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const Finish& job = jobs[i];
        if (job.ending == Ending::complete || job.ending == Ending::release) {
            together[{job.ending, job.attempt}].push_back(i);
        } else {
            groups.push_back({.sql = end_sql(tables, owner, job), .jobs = {i}});
        }
    }
    for (auto& [key, members] : together) {
        std::vector<JobId> ids;
        ids.reserve(members.size());
        for (const std::size_t i : members) {
            ids.push_back(jobs[i].id);
        }
        groups.push_back({.sql = key.first == Ending::complete ? complete_sql(tables, owner, ids, key.second)
                                                               : release_sql(tables, owner, ids, key.second),
                          .jobs = std::move(members)});
    }
    return groups;
}

/// The row after @p job was written, as `read_back` gives it: state is not running, and attempt is this.
int attempt_afterwards(const Finish& job) { return job.ending == Ending::snooze ? job.attempt - 1 : job.attempt; }

struct RowState {
    std::string state;
    bool ours;
    int attempt;
};

/// What became of a job that our statement didn't change: it had been written before, or it was not ours.
Written became_of(const Finish& job, const RowState& row) {
    if (row.state == "running") {
        return Written::lost;
    }
    if (job.ending == Ending::release) {
        return Written::yes;  // keeps no trace of its owner
    }
    if (job.ending != Ending::complete && row.state == "completed") {
        return row.ours && row.attempt == job.attempt ? Written::completed : Written::lost;
    }
    return row.ours && row.attempt == attempt_afterwards(job) ? Written::yes : Written::lost;
}

std::unordered_map<JobId, RowState> read_back(mysql::Session& session, const Tables& tables, const core::Token& owner,
                                              std::span<const JobId> ids) {
    mysql::Reply reply = session.execute(read_back_sql(tables, owner, ids), kComplete);
    std::unordered_map<JobId, RowState> states;
    while (reply.rows.next()) {
        states.emplace(reply.rows.number(0), RowState{.state = std::string{reply.rows.text(1)},
                                                      .ours = reply.rows.number(2) == 1,
                                                      .attempt = reply.rows.number<int>(3)});
    }
    return states;
}

}  // namespace

// A finished job keeps owner and attempt: they prove who finished it, so an outcome that got lost on the way can be read
// back instead of guessed.
std::string complete_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids, int attempt) {
    return fmt::format(
        "UPDATE {} FORCE INDEX (PRIMARY) SET state='completed',lease_until={},finished_at=UTC_TIMESTAMP(6)"
        " WHERE id IN ({}) AND {}",
        tables.jobs, kNever, id_list(ids), fence(owner, attempt));
}

std::string release_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids, int attempt) {
    return fmt::format(
        "UPDATE {} FORCE INDEX (PRIMARY) SET state='pending',owner='',lease_until={},started_at={},attempt=attempt-1,"
        "available_at=UTC_TIMESTAMP(6) WHERE id IN ({}) AND {}",
        tables.jobs, kNever, kNever, id_list(ids), fence(owner, attempt));
}

std::string end_sql(const Tables& tables, const core::Token& owner, const Finish& job) {
    const bool again = job.ending == Ending::retry || job.ending == Ending::snooze;
    const std::string_view state = again ? "pending" : job.ending == Ending::cancel ? "cancelled" : "dead";
    return fmt::format(
        "UPDATE {jobs} FORCE INDEX (PRIMARY) SET state='{state}',lease_until={never},{when}{attempt}{error}"
        " WHERE id={id} AND {fence}",
        fmt::arg("jobs", tables.jobs), fmt::arg("state", state), fmt::arg("never", kNever),
        fmt::arg("when", again ? "available_at=" + from_now(job.delay) : std::string{"finished_at=UTC_TIMESTAMP(6)"}),
        fmt::arg("attempt", job.ending == Ending::snooze ? ",attempt=attempt-1" : ""),
        fmt::arg("error", job.error.empty() ? std::string{} : ",last_error=" + sql_literal(job.error)),
        fmt::arg("id", job.id), fmt::arg("fence", fence(owner, job.attempt)));
}

std::string read_back_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids) {
    return fmt::format("SELECT id,state,owner={},attempt FROM {} FORCE INDEX (PRIMARY) WHERE id IN ({})",
                       token_literal(owner), tables.jobs, id_list(ids));
}

// With the id alone the optimizer takes the index as covering and may read, and lock, all of it.
std::string lock_held_sql(const Tables& tables, std::span<const JobId> ids) {
    return fmt::format("SELECT id,state FROM {} FORCE INDEX (PRIMARY) WHERE id IN ({}) FOR UPDATE SKIP LOCKED",
                       tables.jobs, id_list(ids));
}

namespace {

/// Runs the groups' statements and finds out which jobs were lost. @p open: a transaction is open already.
std::vector<Written> write(mysql::Session& session, const Tables& tables, const core::Token& owner,
                           std::span<const Finish> jobs, bool open) {
    const std::vector<Group> groups = group(tables, owner, jobs);
    std::string sql;
    for (const Group& group : groups) {
        sql += (sql.empty() ? "" : ";") + group.sql;
    }
    const bool enclose = !open && groups.size() > 1;
    const std::vector<mysql::Reply> replies =
        open ? session.commit(sql, kComplete)
             : session.execute_all(enclose ? "START TRANSACTION;" + sql + ";COMMIT" : sql, kComplete);

    std::vector<JobId> uncertain;
    const std::size_t first = enclose ? 1 : 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (replies[first + i].affected < groups[i].jobs.size()) {
            for (const std::size_t job : groups[i].jobs) {
                uncertain.push_back(jobs[job].id);
            }
        }
    }
    std::vector<Written> written(jobs.size(), Written::yes);
    if (uncertain.empty()) {
        return written;
    }
    const auto states = read_back(session, tables, owner, uncertain);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (std::find(uncertain.begin(), uncertain.end(), jobs[i].id) == uncertain.end()) {
            continue;
        }
        const auto found = states.find(jobs[i].id);
        written[i] = found == states.end() ? Written::lost : became_of(jobs[i], found->second);
    }
    return written;
}

}  // namespace

std::vector<Written> finish(mysql::Session& session, const Tables& tables, const core::Token& owner,
                            std::span<const Finish> jobs) {
    return jobs.empty() ? std::vector<Written>{} : write(session, tables, owner, jobs, false);
}

std::vector<Written> finish_unlocked(mysql::Session& session, const Tables& tables, const core::Token& owner,
                                     std::span<const Finish> jobs) {
    std::vector<mysql::Reply> replies = session.begin(lock_held_sql(tables, ids_of(jobs)), kComplete);
    std::unordered_set<JobId> lockable;
    for (mysql::Rows& rows = replies.back().rows; rows.next();) {
        lockable.insert(rows.number(0));
    }
    std::vector<Finish> now;
    for (const Finish& job : jobs) {
        if (lockable.contains(job.id)) {
            now.push_back(job);
        }
    }
    std::vector<Written> of_now;
    if (now.empty()) {
        session.rollback(kComplete);
    } else {
        of_now = write(session, tables, owner, now, true);
    }
    std::vector<Written> written;
    auto next = of_now.begin();
    for (const Finish& job : jobs) {
        written.push_back(lockable.contains(job.id) ? *next++ : Written::locked);
    }
    return written;
}

std::vector<bool> completed_by(mysql::Session& session, const Tables& tables, const core::Token& owner,
                               std::span<const Finish> jobs) {
    const auto states = read_back(session, tables, owner, ids_of(jobs));
    std::vector<bool> completed;
    for (const Finish& job : jobs) {
        const auto found = states.find(job.id);
        completed.push_back(found != states.end() && found->second.ours && found->second.attempt == job.attempt &&
                            found->second.state == "completed");
    }
    return completed;
}

}  // namespace commitq::store
