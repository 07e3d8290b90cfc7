// Does everything add up? Compares what the database holds with what the receiver wrote down.
#pragma once

#include <commitq/interop/mysql.h>
#include <commitq/queue.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "receiver.h"

namespace shop {

struct Reconciliation {
    std::uint64_t orders = 0;             ///< Rows of this run in `shop_orders`.
    std::uint64_t jobs = 0;               ///< Rows of this run in commitq's table.
    std::uint64_t completed = 0;          ///< Those of them that are completed.
    std::uint64_t delivered = 0;          ///< Jobs in the receiver's log.
    std::uint64_t lost = 0;               ///< Jobs that are not.
    std::uint64_t ghosts = 0;             ///< Deliveries of jobs that were rolled back.
    std::vector<std::string> problems{};  ///< What does not add up; empty if all does.
};

/// @param db a connection that sees the tables.
/// @param run names the orders in `shop_orders`.
/// @param queue names the jobs.
/// @param log what was delivered.
/// @param ghosts jobs that were enqueued in transactions that were rolled back.
/// @throws examples::SqlError
Reconciliation reconcile(MYSQL* db, std::string_view run, std::string_view queue, const std::vector<Delivery>& log,
                         const std::vector<commitq::JobId>& ghosts);

}  // namespace shop
