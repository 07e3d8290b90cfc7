// Renewing leases.
#pragma once

#include <commitq/queue.h>
#include <core/random.h>
#include <mysql/session.h>
#include <store/tables.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace commitq::store {

struct RenewResult {
    std::vector<JobId> renewed{};    ///< Ours, for another lease.
    std::vector<JobId> completed{};  ///< Completed by us: a handler's transaction did, and the handler still runs.
    std::vector<JobId> lost{};       ///< Not ours any more. Those in no list are locked by a transaction just now.
};

/// `renew_select`, `renew_update`: renews all of @p ids that @p owner holds. Never waits for a lock: a handler's own
/// transaction that completes its job holds that row, and must not cost the worker all its other leases.
/// Two round trips, three when some are missing.
RenewResult renew(mysql::Session& session, const Tables& tables, const core::Token& owner, std::span<const JobId> ids,
                  std::chrono::microseconds lease);

std::string renew_select_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids);
std::string renew_update_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids,
                             std::chrono::microseconds lease);
/// `still_owned`: a plain read of which of @p ids the owner holds, or has completed.
std::string still_owned_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids);

}  // namespace commitq::store
