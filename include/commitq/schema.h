/// @file
/// Creates and upgrades the tables. `commitq migrate` is the same from the command line.
///
///     commitq::Schema schema{commitq::ConnectOptions::from_url(url)};
///     schema.migrate();
#pragma once

#include <commitq/connect_options.h>
#include <commitq/export.h>

#include <string>
#include <vector>

namespace commitq {

/// The schema under one prefix. Ownership: connects for each call. Threading: thread-safe.
class COMMITQ_EXPORT Schema {
public:
    /// The version that this library works with.
    static constexpr int kVersion = 1;

    /// @param connection where; `database` must be set and must exist.
    /// @param prefix of the table names; `[A-Za-z0-9_]+`, at most 32 characters.
    /// @throws Error `invalid_argument`.
    explicit Schema(ConnectOptions connection, std::string prefix = "commitq_");

    /// The version of the tables; 0 when there are none.
    /// @throws Error `connection_lost`, `access_denied`, `tls_failed`, and what the server gives.
    [[nodiscard]] int version() const;

    /// Creates or upgrades the tables. May be run again, by several processes at once, and after a crash halfway.
    /// Waits up to an hour for each statement, whatever `ConnectOptions::read_timeout` says: a change of a large table
    /// takes its time.
    /// @returns the number of migrations applied.
    /// @throws Error `schema_too_new`, `lock_timeout` when another process migrates for over a minute,
    ///         `access_denied`, and what the server gives.
    int migrate() const;

    /// The SQL that `migrate` would run, statement by statement; empty when up to date.
    /// @throws Error as `version`, and `schema_too_new`.
    [[nodiscard]] std::vector<std::string> pending() const;

    /// Throws unless the tables have the version that this library works with.
    /// An account that may not read the version passes.
    /// @throws Error `schema_missing`, `schema_too_old`, `schema_too_new`, and what connecting gives.
    void check() const;

private:
    ConnectOptions connection_;
    std::string prefix_;
};

}  // namespace commitq
