#include <commitq/testing.h>
#include <core/headers.h>
#include <core/names.h>
#include <fmt/format.h>
#include <mysql/statement.h>
#include <store/sql.h>
#include <store/tables.h>

namespace commitq::testing {
namespace {

constexpr std::string_view kOperation = "testing";

}  // namespace

Enqueued::Enqueued(Handle db, std::string prefix) : db_{db}, prefix_{std::move(prefix)} {
    core::check_prefix(kOperation, prefix_);
    mysql::Reply reply = mysql::execute(
        mysql::unwrap(db_), fmt::format("SELECT COALESCE(MAX(id),0) FROM {}", store::Tables{prefix_}.jobs), kOperation);
    reply.rows.next();
    last_ = reply.rows.number(0);
}

std::vector<EnqueuedJob> Enqueued::jobs(const Filter& filter) const {
    const store::Tables tables{prefix_};
    std::string sql = fmt::format(
        "SELECT j.id,CAST(j.queue AS BINARY),CAST(j.type AS BINARY),j.state,j.priority,j.attempt,"
        "TIMESTAMPDIFF(MICROSECOND,j.created_at,j.available_at),j.headers,IF(j.payload_id=0,j.payload,p.payload)"
        " FROM {} j LEFT JOIN {} p ON p.id=j.payload_id WHERE j.id>{}",
        tables.jobs, tables.payloads, last_);
    if (!filter.queue.empty()) {
        core::check_queue_name(kOperation, filter.queue);
        sql += " AND j.queue=" + store::name_literal(filter.queue);
    }
    if (!filter.type.empty()) {
        core::check_type_name(kOperation, filter.type);
        sql += " AND j.type=" + store::name_literal(filter.type);
    }
    mysql::Reply reply = mysql::execute(mysql::unwrap(db_), sql + " ORDER BY j.id", kOperation);
    std::vector<EnqueuedJob> jobs;
    for (mysql::Rows& rows = reply.rows; rows.next();) {
        jobs.push_back({.id = rows.number(0),
                        .queue = std::string{rows.text(1)},
                        .type = std::string{rows.text(2)},
                        .state = std::string{rows.text(3)},
                        .payload = std::string{rows.text(8)},
                        .priority = rows.number<int>(4),
                        .attempt = rows.number<int>(5),
                        .delay = std::chrono::microseconds{rows.number<std::int64_t>(6)},
                        .headers = core::decode_headers(rows.text(7))});
    }
    return jobs;
}

void Enqueued::expect(std::size_t count, const Filter& filter) const {
    const auto found = jobs(filter);
    if (found.size() == count) {
        return;
    }
    std::string list;
    for (const EnqueuedJob& job : jobs()) {
        list += fmt::format("\n  {} {} {} {}", job.id, job.queue, job.type, job.state);
    }
    throw Error{{.code = Errc::wrong_state,
                 .operation = std::string{kOperation},
                 .message = fmt::format("expected {} jobs of queue '{}' and type '{}', found {}; enqueued were:{}",
                                        count, filter.queue, filter.type, found.size(), list)}};
}

}  // namespace commitq::testing
