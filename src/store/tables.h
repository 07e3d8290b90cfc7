// The names of the tables under one prefix, quoted, ready for a statement.
#pragma once

#include <string>
#include <string_view>

namespace commitq::store {

/// The "no time" of the fixed-width DATETIME(6) columns, see sql/0001_jobs.sql.
inline constexpr std::string_view kNever = "'1970-01-01 00:00:00.000000'";

/// Payloads up to this size stand in the job's row, longer ones in a table of their own.
inline constexpr std::size_t kInlinePayload = 1024;

/// A value. @p prefix and @p database must have been checked: they go into statements as they are.
struct Tables {
    explicit Tables(std::string_view prefix, std::string_view database = {});

    std::string jobs;
    std::string payloads;
    std::string queues;
    std::string workers;
    std::string schema;
    std::string duties;
    std::string jobs_view;
};

}  // namespace commitq::store
