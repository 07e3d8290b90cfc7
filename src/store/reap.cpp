#include <fmt/format.h>
#include <fmt/ranges.h>
#include <store/reap.h>
#include <store/sql.h>

#include <utility>
#include <vector>

namespace commitq::store {
namespace {

constexpr std::string_view kReap = "reap";

}  // namespace

std::string find_expired_sql(const Tables& tables, std::span<const std::string> queues, int limit,
                             std::span<const JobId> but) {
    std::vector<std::string> names;
    names.reserve(queues.size());
    for (const std::string& queue : queues) {
        names.push_back(name_literal(queue));
    }
    return fmt::format(
        "SELECT id FROM {} FORCE INDEX (claim) WHERE queue IN ({}) AND state='running'"
        " AND lease_until<=UTC_TIMESTAMP(6){} LIMIT {}",
        tables.jobs, fmt::join(names, ","),
        but.empty() ? std::string{} : fmt::format(" AND id NOT IN ({})", id_list(but)), limit);
}

std::string lock_expired_sql(const Tables& tables, std::span<const JobId> ids) {
    return fmt::format(
        "SELECT id,attempt>=max_attempts FROM {} FORCE INDEX (PRIMARY) WHERE id IN ({}) AND state='running'"
        " AND lease_until<=UTC_TIMESTAMP(6) FOR UPDATE SKIP LOCKED",
        tables.jobs, id_list(ids));
}

// Assignments run from left to right: last_error reads the owner before it is reset.
std::string reap_sql(const Tables& tables, std::span<const JobId> ids, bool dead) {
    return fmt::format(
        "UPDATE {} FORCE INDEX (PRIMARY) SET last_error=CONCAT('lease expired, held by ',LOWER(HEX(owner))),"
        "state='{}',owner='',lease_until={},{}=UTC_TIMESTAMP(6)"
        " WHERE id IN ({}) AND state='running' AND lease_until<=UTC_TIMESTAMP(6)",
        tables.jobs, dead ? "dead" : "pending", kNever, dead ? "finished_at" : "available_at", id_list(ids));
}

std::vector<JobId> find_expired(mysql::Session& session, const Tables& tables, std::span<const std::string> queues,
                                int limit, std::span<const JobId> but) {
    std::vector<JobId> found;
    if (queues.empty()) {
        return found;
    }
    mysql::Reply reply = session.execute(find_expired_sql(tables, queues, limit, but), kReap);
    while (reply.rows.next()) {
        found.push_back(reply.rows.number(0));
    }
    return found;
}

ReapResult reap(mysql::Session& session, const Tables& tables, std::vector<JobId> candidates) {
    auto replies = session.begin(lock_expired_sql(tables, candidates), kReap);
    std::vector<JobId> again;
    std::vector<JobId> dead;
    for (mysql::Rows& rows = replies.back().rows; rows.next();) {
        (rows.number(1) != 0 ? dead : again).push_back(rows.number(0));
        std::erase(candidates, rows.number(0));
    }
    std::vector<std::string> updates;
    if (!again.empty()) {
        updates.push_back(reap_sql(tables, again, false));
    }
    if (!dead.empty()) {
        updates.push_back(reap_sql(tables, dead, true));
    }
    session.commit(fmt::format("{}", fmt::join(updates, ";")), kReap);
    return {.report = {.returned = again.size(), .dead = dead.size()}, .passed_over = std::move(candidates)};
}

std::string take_duty_sql(const Tables& tables, std::string_view duty, std::chrono::microseconds interval) {
    return fmt::format(
        "SELECT duty FROM {} WHERE duty={} AND last_run_at<=UTC_TIMESTAMP(6) - INTERVAL {} MICROSECOND"
        " FOR UPDATE SKIP LOCKED",
        tables.duties, name_literal(duty), interval.count());
}

std::string duty_done_sql(const Tables& tables, std::string_view duty) {
    return fmt::format("UPDATE {} SET last_run_at=UTC_TIMESTAMP(6) WHERE duty={}", tables.duties, name_literal(duty));
}

bool take_duty(mysql::Session& session, const Tables& tables, std::string_view duty,
               std::chrono::microseconds interval) {
    auto replies = session.begin(take_duty_sql(tables, duty, interval), kReap);
    const bool due = replies.back().rows.size() > 0;
    session.commit(due ? duty_done_sql(tables, duty) : std::string{}, kReap);
    return due;
}

std::chrono::seconds uptime(mysql::Session& session) {
    mysql::Reply reply = session.execute("SHOW GLOBAL STATUS LIKE 'Uptime'", kReap);
    return std::chrono::seconds{reply.rows.next() ? reply.rows.number<std::int64_t>(1) : 0};
}

}  // namespace commitq::store
