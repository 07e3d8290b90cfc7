// Taking back jobs whose lease has run out.
#pragma once

#include <commitq/reaper.h>
#include <mysql/session.h>
#include <store/tables.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::store {

/// `find_expired`: candidates for `reap`, by a plain read.
/// @param but these are none: passed over before.
std::vector<JobId> find_expired(mysql::Session& session, const Tables& tables, std::span<const std::string> queues,
                                int limit, std::span<const JobId> but = {});

struct ReapResult {
    ReapReport report{};
    std::vector<JobId> passed_over{};  ///< Somebody has them locked, or they were renewed meanwhile.
};

/// `lock_expired`, `reap`: one batch. The candidates are locked by primary key with SKIP LOCKED, and changed by primary
/// key: a reaper never waits for a completion, and no completion for more than one batch of it.
/// Throws Error: then the batch is as it was.
ReapResult reap(mysql::Session& session, const Tables& tables, std::vector<JobId> candidates);

/// `take_duty`: inside a transaction, locks the duty if nobody has it and it was last done @p interval ago.
std::string take_duty_sql(const Tables& tables, std::string_view duty, std::chrono::microseconds interval);
std::string duty_done_sql(const Tables& tables, std::string_view duty);
/// Marks the duty as done now if it was due, and says whether it was: one of many processes does it.
bool take_duty(mysql::Session& session, const Tables& tables, std::string_view duty,
               std::chrono::microseconds interval);

std::string find_expired_sql(const Tables& tables, std::span<const std::string> queues, int limit,
                             std::span<const JobId> but = {});
std::string lock_expired_sql(const Tables& tables, std::span<const JobId> ids);
std::string reap_sql(const Tables& tables, std::span<const JobId> ids, bool dead);

/// How long the server has been up.
std::chrono::seconds uptime(mysql::Session& session);

}  // namespace commitq::store
