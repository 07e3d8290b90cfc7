#include <core/enqueue.h>
#include <core/headers.h>
#include <core/text.h>
#include <fmt/format.h>
#include <store/enqueue.h>
#include <store/sql.h>

#include <algorithm>
#include <iterator>

namespace commitq::store {
namespace {

std::string available_at(const EnqueueOptions& options) {
    if (options.at) {
        return fmt::format("GREATEST(UTC_TIMESTAMP(6),TIMESTAMP'{}')", core::datetime_literal(*options.at));
    }
    // Most jobs have no delay, and the sum would be computed for each.
    return options.delay == options.delay.zero() ? "UTC_TIMESTAMP(6)" : from_now(options.delay);
}

/// A name as a value to insert. To compare one takes `name_literal`, which has a character set.
std::string hex_literal(std::string_view name) { return fmt::format("x'{}'", core::hex(name)); }

/// Whether a job has something in the columns that have a default.
bool has_extras(const Insert& job) {
    const EnqueueOptions& options = *job.options;
    return job.payload.size() > kInlinePayload || options.priority != EnqueueOptions{}.priority ||
           options.max_attempts || !options.headers.empty();
}

}  // namespace

std::string insert_payloads_sql(const Tables& tables, std::span<const Insert> jobs) {
    std::string sql = fmt::format("INSERT INTO {} (payload) VALUES ", tables.payloads);
    std::string_view separator = "(x'";
    for (const Insert& job : jobs) {
        if (job.payload.size() > kInlinePayload) {
            sql += separator;
            core::append_hex(sql, job.payload);
            separator = "'),(x'";
        }
    }
    sql += "')";
    return sql;
}

std::string insert_jobs_sql(const Tables& tables, std::string_view queue, std::span<const Insert> jobs,
                            std::span<const std::uint64_t> payload_ids) {
    // Most jobs have nothing in these columns, and the server takes a twentieth less time without them.
    const bool extras = std::any_of(jobs.begin(), jobs.end(), has_extras);
    std::string sql = fmt::format("INSERT INTO {} (queue,type,available_at,created_at,payload_size,payload{}) VALUES ",
                                  tables.jobs, extras ? ",payload_id,priority,max_attempts,headers" : "");
    const std::string queue_literal = hex_literal(queue);
    std::string_view type;
    std::string type_literal;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const Insert& job = jobs[i];
        const EnqueueOptions& options = *job.options;
        if (job.type != type) {
            type = job.type;
            type_literal = hex_literal(type);
        }
        fmt::format_to(std::back_inserter(sql), "{}({},{},{},UTC_TIMESTAMP(6),{},x'", i == 0 ? "" : ",", queue_literal,
                       type_literal, available_at(options), job.payload.size());
        if (payload_ids[i] == 0) {
            core::append_hex(sql, job.payload);
        }
        if (extras) {
            fmt::format_to(std::back_inserter(sql), "',{},{},{},x'", payload_ids[i], options.priority,
                           options.max_attempts.value_or(0));
            core::append_hex(sql, core::encode_headers(options.headers));
        }
        sql += "')";
    }
    return sql;
}

std::size_t statement_bytes(const Insert& job) {
    constexpr std::size_t kRest = 300;  // the queue's name in hex (2 * 64) and the fixed text of a row
    return 2 * (job.type.size() + job.payload.size() + core::encode_headers(job.options->headers).size()) + kRest;
}

ServerLimits read_limits(MYSQL* client) {
    mysql::Reply reply =
        mysql::execute(client, "SELECT @@session.max_allowed_packet, @@session.auto_increment_increment", "enqueue");
    reply.rows.next();
    return {.max_allowed_packet = reply.rows.number(0), .auto_increment_increment = reply.rows.number(1)};
}

}  // namespace commitq::store
