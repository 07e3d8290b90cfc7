// The schema's version.
#pragma once

#include <mysql/session.h>
#include <store/tables.h>

#include <string>
#include <string_view>

namespace commitq::store {

/// `read_version`.
std::string read_version_sql(const Tables& tables);
/// The version of the tables, 0 when there are none.
int read_version(MYSQL* client, const Tables& tables, std::string_view operation);

/// Throws `schema_missing`, `schema_too_old` or `schema_too_new` unless the version is @p expected.
/// A user who may not read the table (a producer with INSERT only) passes: its INSERT would fail by itself.
void check_version(MYSQL* client, const Tables& tables, int expected, std::string_view operation);

/// `record_version`.
std::string record_version_sql(const Tables& tables, int version);

/// Throws `unsupported_server` unless the server honours SKIP LOCKED: one session locks a row, the other must pass it by.
/// TiDB and some proxies parse the words and ignore them, and two workers would run the same job. Waits for no other
/// worker that starts, which may have been cut off in the middle of it.
void probe_skip_locked(mysql::Session& holder, mysql::Session& passer, const Tables& tables);
std::string probe_sql(const Tables& tables);

}  // namespace commitq::store
