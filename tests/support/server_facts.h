// What a server says about a connection: what it sent, what it waits for, how it is set.
#pragma once

#include "support/database.h"

#include <map>
#include <string>
#include <string_view>

namespace commitq::test {

using Counters = std::map<std::string, long>;

/// Counts what a connection does, by the server's counters for its session.
///
///     SessionCounters sent{db, kStatements};
///     queue.enqueue(db, ...);
///     EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Questions", 1}}));
class SessionCounters {
public:
    /// @param condition of SHOW STATUS WHERE.
    SessionCounters(MYSQL* client, std::string_view condition);

    /// What has changed since the last call, or since the beginning. Asking isn't counted.
    Counters since();

private:
    [[nodiscard]] Counters read() const;

    MYSQL* client_;
    std::string sql_;
    Counters cost_{};  ///< What one `read` adds by itself.
    Counters last_{};
};

/// Statements by kind, and in number.
inline constexpr std::string_view kStatements = R"(Variable_name LIKE 'Com\_%' OR Variable_name='Questions')";
/// Rows that the storage engine was asked for.
inline constexpr std::string_view kRowsRead = R"(Variable_name LIKE 'Handler\_read%')";

/// Whether that connection waits for a row lock just now.
bool waits_for_a_lock(Connection& look, unsigned long connection_id);

using Variables = std::map<std::string, std::string>;

/// The session's variables, without clocks, counters and what other sessions change.
Variables session_variables(Connection& db);
/// `name: before -> after` for each that differs.
std::vector<std::string> changed(const Variables& before, const Variables& after);

}  // namespace commitq::test
