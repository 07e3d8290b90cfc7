#include <core/text.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <store/sql.h>
#include <store/tables.h>

#include <algorithm>
#include <vector>

namespace commitq::store {

Tables::Tables(std::string_view prefix, std::string_view database) {
    const std::string schema_part = database.empty() ? std::string{} : fmt::format("`{}`.", database);
    const auto name = [&](std::string_view table) { return fmt::format("{}`{}{}`", schema_part, prefix, table); };
    jobs = name("jobs");
    payloads = name("payloads");
    queues = name("queues");
    workers = name("workers");
    schema = name("schema");
    duties = name("duties");
    jobs_view = name("jobs_view");
}

std::string name_literal(std::string_view name) { return fmt::format("_ascii x'{}'", core::hex(name)); }

std::string token_literal(const core::Token& token) { return fmt::format("x'{}'", core::hex(token)); }

std::string from_now(std::chrono::microseconds delay) {
    return delay.count() == 0 ? "UTC_TIMESTAMP(6)"
                              : fmt::format("UTC_TIMESTAMP(6) + INTERVAL {} MICROSECOND", delay.count());
}

std::string id_list(std::span<const JobId> ids) {
    std::vector<JobId> sorted{ids.begin(), ids.end()};
    std::sort(sorted.begin(), sorted.end());
    return fmt::format("{}", fmt::join(sorted, ","));
}

}  // namespace commitq::store
