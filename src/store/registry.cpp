#include <commitq/transaction.h>
#include <commitq/version.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <store/registry.h>
#include <store/sql.h>

#include <algorithm>

namespace commitq::store {

std::string upsert_worker_sql(const Tables& tables, const WorkerRow& worker) {
    return fmt::format(
        "INSERT INTO {workers} (token,host,pid,version,queues,started_at,heartbeat_at,lease_ms,held,completed,failed)"
        " VALUES "
        "({token},{host},{pid},'{version}',{queues},UTC_TIMESTAMP(6),UTC_TIMESTAMP(6),{lease},{held},{completed},"
        "{failed}) ON DUPLICATE KEY UPDATE "
        "heartbeat_at=UTC_TIMESTAMP(6),held={held},completed={completed},failed={failed}",
        fmt::arg("workers", tables.workers), fmt::arg("token", token_literal(worker.token)),
        fmt::arg("host", name_literal(worker.host)), fmt::arg("pid", worker.pid), fmt::arg("version", COMMITQ_VERSION),
        fmt::arg("queues", sql_bytes_literal(worker.queues.substr(0, 4096))), fmt::arg("lease", worker.lease.count()),
        fmt::arg("held", worker.held), fmt::arg("completed", worker.completed), fmt::arg("failed", worker.failed));
}

std::string delete_worker_sql(const Tables& tables, const core::Token& token) {
    return fmt::format("DELETE FROM {} WHERE token={}", tables.workers, token_literal(token));
}

std::string forget_workers_sql(const Tables& tables) {
    return fmt::format("DELETE FROM {} WHERE heartbeat_at<UTC_TIMESTAMP(6) - INTERVAL 1 DAY", tables.workers);
}

std::string register_queues_sql(const Tables& tables, std::span<const std::string> queues) {
    std::vector<std::string> sorted{queues.begin(), queues.end()};
    std::sort(sorted.begin(), sorted.end());  // two workers that start at once lock in the same order
    std::vector<std::string> rows;
    rows.reserve(sorted.size());
    for (const std::string& queue : sorted) {
        rows.push_back(fmt::format("({},UTC_TIMESTAMP(6))", name_literal(queue)));
    }
    return fmt::format("INSERT IGNORE INTO {} (queue,created_at) VALUES {}", tables.queues, fmt::join(rows, ","));
}

std::string list_queues_sql(const Tables& tables) {
    return fmt::format("SELECT queue FROM {} ORDER BY queue", tables.queues);
}

std::vector<std::string> list_queues(mysql::Session& session, const Tables& tables) {
    mysql::Reply reply = session.execute(list_queues_sql(tables), "reap");
    std::vector<std::string> queues;
    while (reply.rows.next()) {
        queues.emplace_back(reply.rows.text(0));
    }
    return queues;
}

}  // namespace commitq::store
