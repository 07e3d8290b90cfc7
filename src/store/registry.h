// Who is alive, and which queues there are.
#pragma once

#include <core/random.h>
#include <mysql/session.h>
#include <store/tables.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace commitq::store {

/// A worker's row.
struct WorkerRow {
    core::Token token{};
    std::string host{};
    int pid = 0;
    std::string queues{};  ///< Names, joined by commas.
    std::chrono::milliseconds lease{0};
    std::size_t held = 0;
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
};

/// `upsert_worker`: writes the row with a heartbeat of now.
std::string upsert_worker_sql(const Tables& tables, const WorkerRow& worker);
/// `delete_worker`.
std::string delete_worker_sql(const Tables& tables, const core::Token& token);
/// `forget_workers`: drops rows without a heartbeat for a day; those processes died.
std::string forget_workers_sql(const Tables& tables);
/// `register_queues`: makes the queues known to reapers and people.
std::string register_queues_sql(const Tables& tables, std::span<const std::string> queues);
/// `list_queues`: all that were ever served.
std::string list_queues_sql(const Tables& tables);
std::vector<std::string> list_queues(mysql::Session& session, const Tables& tables);

}  // namespace commitq::store
