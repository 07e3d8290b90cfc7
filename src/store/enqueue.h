// Writing jobs, on the caller's connection.
#pragma once

#include <commitq/queue.h>
#include <mysql/statement.h>
#include <store/tables.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::store {

/// One job to insert. Views: valid as long as the caller's strings.
struct Insert {
    std::string_view type;
    std::string_view payload;
    const EnqueueOptions* options;
};

/// `insert_payload`: the payload rows of jobs whose payload doesn't fit into the row.
std::string insert_payloads_sql(const Tables& tables, std::span<const Insert> jobs);

/// `insert_job`: rows of the jobs table. @p payload_ids has an id for each job with a long payload, 0 for the others.
std::string insert_jobs_sql(const Tables& tables, std::string_view queue, std::span<const Insert> jobs,
                            std::span<const std::uint64_t> payload_ids);

/// An upper bound of what one job adds to a statement, in bytes.
std::size_t statement_bytes(const Insert& job);

/// `packet_size`: the session's max_allowed_packet and auto_increment_increment.
struct ServerLimits {
    std::uint64_t max_allowed_packet;
    std::uint64_t auto_increment_increment;
};
ServerLimits read_limits(MYSQL* client);

}  // namespace commitq::store
