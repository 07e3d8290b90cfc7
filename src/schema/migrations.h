// The numbered files of sql/, embedded at build time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::schema {

/// One file: `0001_jobs.sql` is version 1.
struct Migration {
    std::string_view name;
    std::string_view sql;
};

/// All, in order: entry i brings the schema to version i+1.
std::span<const Migration> migrations();

/// The statements of a migration for one prefix, without comments. A statement ends with `;` at the end of a line.
std::vector<std::string> statements(const Migration& migration, std::string_view prefix);

}  // namespace commitq::schema
