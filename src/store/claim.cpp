#include <fmt/format.h>
#include <mysql/error_map.h>
#include <store/claim.h>
#include <store/sql.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace commitq::store {
namespace {

constexpr std::string_view kClaim = "claim";
constexpr std::size_t kQueuesPerLook = 10;  // times ten priorities: as many subqueries in one statement

std::chrono::system_clock::time_point from_micros(std::int64_t micros) {
    return std::chrono::system_clock::time_point{std::chrono::microseconds{micros}};
}

}  // namespace

// MIN over an index prefix is one dive ("Select tables optimized away"), whatever stands behind it. SELECT DISTINCT
// priority, in contrast, was seen to read the whole backlog.
std::string look_sql(const Tables& tables, std::span<const std::string> queues) {
    std::string sql = "SELECT UTC_TIMESTAMP(6)";
    for (const std::string& queue : queues) {
        const std::string name = name_literal(queue);
        for (int priority = 0; priority < kPriorities; ++priority) {
            fmt::format_to(std::back_inserter(sql),
                           ",(SELECT MIN(available_at) FROM {} FORCE INDEX (claim)"
                           " WHERE queue={} AND state='pending' AND priority={})",
                           tables.jobs, name, priority);
        }
    }
    return sql;
}

std::string look_queues_sql(const Tables& tables, std::span<const std::string> queues) {
    std::string sql = "SELECT 0";
    for (const std::string& queue : queues) {
        fmt::format_to(std::back_inserter(sql),
                       ",(SELECT MIN(priority) FROM {} FORCE INDEX (claim) WHERE queue={} AND state='pending')",
                       tables.jobs, name_literal(queue));
    }
    return sql;
}

namespace {

/// The queues worth a look by priority: all where there are few, else those that have pending jobs.
std::vector<std::size_t> queues_to_look_at(mysql::Session& session, const Tables& tables,
                                           std::span<const std::string> queues) {
    std::vector<std::size_t> indexes;
    if (queues.size() <= kQueuesPerLook) {
        for (std::size_t i = 0; i < queues.size(); ++i) {
            indexes.push_back(i);
        }
        return indexes;
    }
    constexpr std::size_t kQueuesPerStatement = 200;
    for (std::size_t first = 0; first < queues.size(); first += kQueuesPerStatement) {
        const auto part = queues.subspan(first, std::min(kQueuesPerStatement, queues.size() - first));
        mysql::Reply reply = session.execute(look_queues_sql(tables, part), kClaim);
        reply.rows.next();
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (!reply.rows.is_null(static_cast<unsigned>(i + 1))) {
                indexes.push_back(first + i);
            }
        }
    }
    return indexes;
}

std::chrono::microseconds micros_between(std::string_view from, std::string_view to);

}  // namespace

std::vector<Due> look(mysql::Session& session, const Tables& tables, std::span<const std::string> queues) {
    const std::vector<std::size_t> indexes = queues_to_look_at(session, tables, queues);
    std::vector<Due> found;
    for (std::size_t first = 0; first < indexes.size(); first += kQueuesPerLook) {
        std::vector<std::string> names;
        for (std::size_t i = first; i < std::min(indexes.size(), first + kQueuesPerLook); ++i) {
            names.push_back(queues[indexes[i]]);
        }
        mysql::Reply reply = session.execute(look_sql(tables, names), kClaim);
        reply.rows.next();
        for (std::size_t i = 0; i < names.size(); ++i) {
            for (int priority = 0; priority < kPriorities; ++priority) {
                const auto column = static_cast<unsigned>(1 + i * kPriorities + static_cast<std::size_t>(priority));
                if (!reply.rows.is_null(column)) {
                    found.push_back({.queue = indexes[first + i],
                                     .priority = priority,
                                     .available_at = std::string{reply.rows.text(column)},
                                     .in = micros_between(reply.rows.text(0), reply.rows.text(column))});
                }
            }
        }
    }
    return found;
}

namespace {

int digits(std::string_view text, std::size_t at, std::size_t count) {
    int value = 0;
    for (const char digit : text.substr(at, count)) {
        value = value * 10 + (digit - '0');
    }
    return value;
}

/// `2026-11-30 22:01:02.123456`, as the server prints DATETIME(6), to a point on the UTC time line.
std::chrono::sys_time<std::chrono::microseconds> parse_datetime(std::string_view text) {
    using namespace std::chrono;
    if (text.size() < 26) {
        return {};
    }
    const sys_days day{year{digits(text, 0, 4)} / month{static_cast<unsigned>(digits(text, 5, 2))} /
                       std::chrono::day{static_cast<unsigned>(digits(text, 8, 2))}};
    return day + hours{digits(text, 11, 2)} + minutes{digits(text, 14, 2)} + seconds{digits(text, 17, 2)} +
           microseconds{digits(text, 20, 6)};
}

std::chrono::microseconds micros_between(std::string_view from, std::string_view to) {
    return parse_datetime(to) - parse_datetime(from);
}

}  // namespace

Claimant make_claimant(const core::Token& owner, std::chrono::microseconds lease,
                       std::span<const std::pair<std::string, int>> types_and_max_attempts) {
    std::string types;
    std::string cases;
    for (const auto& [type, max_attempts] : types_and_max_attempts) {
        const std::string name = name_literal(type);
        types += (types.empty() ? "" : ",") + name;
        fmt::format_to(std::back_inserter(cases), " WHEN type={} THEN {}", name, max_attempts);
    }
    return {.owner = owner,
            .lease = lease,
            .known_types = types,
            .max_attempts = fmt::format("CASE WHEN max_attempts>0 THEN max_attempts{} END", cases)};
}

std::string better_sql(const Tables& tables, std::string_view queue, int priority) {
    return fmt::format(
        "SELECT MIN(priority) FROM {} FORCE INDEX (claim) WHERE queue={} AND state='pending' AND priority<{}",
        tables.jobs, name_literal(queue), priority);
}

// Equality on queue, state and priority, and an order that ends in the unique id: the index gives the rows in order and
// only the rows taken are locked. With `queue IN (...)` or without the priority the server sorts, and locks all.
// Types are compared as bytes: as texts, `t` and `t ` are the same, and there is no handler for that one.
std::string claim_select_sql(const Tables& tables, const Claimant& claimant, const ClaimRange& range) {
    return fmt::format(
        "SELECT id,type,attempt+1,{max_attempts},available_at,payload_id,payload_size,payload,headers,"
        "TIMESTAMPDIFF(MICROSECOND,{epoch},created_at),TIMESTAMPDIFF(MICROSECOND,available_at,UTC_TIMESTAMP(6)),{"
        "better}"
        " FROM {jobs} FORCE INDEX (claim)"
        " WHERE queue={queue} AND state='pending' AND priority={priority}"
        " AND available_at<=UTC_TIMESTAMP(6) AND available_at>=TIMESTAMP'{from}' AND CAST(type AS BINARY) IN "
        "({types}){not_these}"
        " ORDER BY available_at,id LIMIT {limit} FOR UPDATE SKIP LOCKED",
        fmt::arg("max_attempts", claimant.max_attempts), fmt::arg("epoch", kNever), fmt::arg("jobs", tables.jobs),
        fmt::arg("queue", name_literal(range.queue)), fmt::arg("priority", range.priority),
        fmt::arg("from", range.from), fmt::arg("types", claimant.known_types),
        fmt::arg("not_these", range.not_these.empty() ? std::string{}
                                                      : fmt::format(" AND id NOT IN ({})", id_list(range.not_these))),
        fmt::arg("better", range.only_if_best ? "(" + better_sql(tables, range.queue, range.priority) + ")" : "NULL"),
        fmt::arg("limit", range.limit));
}

std::string claim_update_sql(const Tables& tables, const Claimant& claimant, std::span<const JobId> ids) {
    return fmt::format(
        "UPDATE {jobs} FORCE INDEX (PRIMARY) SET state='running',owner={owner},lease_until={lease},"
        "started_at=UTC_TIMESTAMP(6),attempt=attempt+1,max_attempts={max_attempts} WHERE id IN ({ids})",
        fmt::arg("jobs", tables.jobs), fmt::arg("owner", token_literal(claimant.owner)),
        fmt::arg("lease", from_now(claimant.lease)), fmt::arg("max_attempts", claimant.max_attempts),
        fmt::arg("ids", id_list(ids)));
}

std::string read_payloads_sql(const Tables& tables, std::span<const std::uint64_t> payload_ids) {
    return fmt::format("SELECT id,payload FROM {} FORCE INDEX (PRIMARY) WHERE id IN ({})", tables.payloads,
                       id_list(payload_ids));
}

namespace {

/// What the claim's SELECT gave, up to the byte budget.
struct Selected {
    std::vector<ClaimedJob> jobs;
    std::vector<JobId> ids;
    std::vector<std::size_t> sizes;                             ///< Of the payloads, as their jobs say.
    std::unordered_map<std::uint64_t, std::size_t> by_payload;  ///< payload id -> index in jobs
    std::vector<std::uint64_t> payload_ids;
    std::string last_available_at;
    bool cut = false;
    std::optional<int> better{};
};

Selected read_selected(mysql::Rows& rows, const ClaimRange& range) {
    Selected selected;
    std::size_t bytes = 0;
    while (rows.next()) {
        if (!rows.is_null(11)) {
            selected.better = rows.number<int>(11);
            return selected;
        }
        const auto size = rows.number<std::size_t>(6);
        if (!selected.jobs.empty() && bytes + size > range.byte_budget) {
            selected.cut = true;
            break;
        }
        bytes += size;
        ClaimedJob& job = selected.jobs.emplace_back();
        job.id = rows.number(0);
        job.queue = range.queue;
        job.type = rows.text(1);
        job.priority = range.priority;
        job.attempt = rows.number<int>(2);
        job.max_attempts = rows.number<int>(3);
        job.payload = rows.text(7);
        job.headers = rows.text(8);
        job.created_at = from_micros(rows.number<std::int64_t>(9));
        job.wait = std::chrono::microseconds{rows.number<std::int64_t>(10)};
        job.damaged = job.payload.size() != size;
        selected.sizes.push_back(size);
        selected.ids.push_back(job.id);
        selected.last_available_at = rows.text(4);
        if (const auto payload_id = rows.number(5); payload_id != 0) {
            selected.by_payload.emplace(payload_id, selected.jobs.size() - 1);
            selected.payload_ids.push_back(payload_id);
        }
    }
    return selected;
}

}  // namespace

ClaimResult claim(mysql::Session& session, const Tables& tables, const Claimant& claimant, const ClaimRange& range) {
    std::vector<mysql::Reply> replies = session.begin(claim_select_sql(tables, claimant, range), kClaim);
    Selected selected = read_selected(replies.back().rows, range);
    if (selected.jobs.empty()) {
        session.rollback(kClaim);  // an open transaction would hold the table against DDL
        return {.better = selected.better};
    }
    // Payloads are read before COMMIT: whatever fails, nothing has been claimed.
    const bool with_payloads = !selected.payload_ids.empty();
    const std::string read = with_payloads ? read_payloads_sql(tables, selected.payload_ids) + ";" : std::string{};
    try {
        replies = session.commit(read + claim_update_sql(tables, claimant, selected.ids), kClaim);
    } catch (const Error& error) {
        if (selected.ids.size() == 1 && mysql::is_refusal(error)) {
            throw JobRefused{error, selected.ids.front()};
        }
        throw;
    }
    if (with_payloads) {
        mysql::Rows& rows = replies.front().rows;
        while (rows.next()) {
            if (const auto found = selected.by_payload.find(rows.number(0)); found != selected.by_payload.end()) {
                ClaimedJob& job = selected.jobs[found->second];
                job.payload = rows.text(1);
                job.damaged = job.payload.size() != selected.sizes[found->second];
            }
        }
    }
    const bool full = selected.cut || std::cmp_equal(selected.jobs.size(), range.limit);
    return {.jobs = std::move(selected.jobs), .last_available_at = std::move(selected.last_available_at), .more = full};
}

}  // namespace commitq::store
