#include <fmt/format.h>
#include <store/lease.h>
#include <store/sql.h>

#include <algorithm>
#include <iterator>

namespace commitq::store {
namespace {

constexpr std::string_view kHeartbeat = "heartbeat";

std::vector<JobId> read_ids(mysql::Rows& rows) {
    std::vector<JobId> ids;
    while (rows.next()) {
        ids.push_back(rows.number(0));
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

std::vector<JobId> without(std::span<const JobId> ids, std::span<const JobId> taken) {
    std::vector<JobId> sorted{ids.begin(), ids.end()};
    std::sort(sorted.begin(), sorted.end());
    std::vector<JobId> rest;
    std::set_difference(sorted.begin(), sorted.end(), taken.begin(), taken.end(), std::back_inserter(rest));
    return rest;
}

}  // namespace

std::string renew_select_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids) {
    return fmt::format(
        "SELECT id FROM {} FORCE INDEX (PRIMARY) WHERE id IN ({}) AND state='running' AND owner={} FOR UPDATE SKIP "
        "LOCKED",
        tables.jobs, id_list(ids), token_literal(owner));
}

std::string renew_update_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids,
                             std::chrono::microseconds lease) {
    return fmt::format(
        "UPDATE {} FORCE INDEX (PRIMARY) SET lease_until={} WHERE id IN ({}) AND state='running' AND owner={}",
        tables.jobs, from_now(lease), id_list(ids), token_literal(owner));
}

std::string still_owned_sql(const Tables& tables, const core::Token& owner, std::span<const JobId> ids) {
    return fmt::format(
        "SELECT id,state='completed' FROM {} FORCE INDEX (PRIMARY) WHERE id IN ({}) AND state IN "
        "('running','completed')"
        " AND owner={}",
        tables.jobs, id_list(ids), token_literal(owner));
}

RenewResult renew(mysql::Session& session, const Tables& tables, const core::Token& owner, std::span<const JobId> ids,
                  std::chrono::microseconds lease) {
    RenewResult result;
    if (ids.empty()) {
        return result;
    }
    auto replies = session.begin(renew_select_sql(tables, owner, ids), kHeartbeat);
    result.renewed = read_ids(replies.back().rows);
    session.commit(result.renewed.empty() ? std::string{} : renew_update_sql(tables, owner, result.renewed, lease),
                   kHeartbeat);
    if (const std::vector<JobId> missing = without(ids, result.renewed); !missing.empty()) {
        mysql::Reply reply = session.execute(still_owned_sql(tables, owner, missing), kHeartbeat);
        std::vector<JobId> ours;
        while (reply.rows.next()) {
            const auto id = reply.rows.number(0);
            ours.push_back(id);
            if (reply.rows.number(1) != 0) {
                result.completed.push_back(id);
            }
        }
        std::sort(ours.begin(), ours.end());
        std::sort(result.completed.begin(), result.completed.end());
        result.lost = without(missing, ours);
    }
    return result;
}

}  // namespace commitq::store
