// Running statements on any connection, the caller's too.
#pragma once

#include <mysql/rows.h>

#include <string_view>
#include <vector>

namespace commitq::mysql {

/// Runs one statement. Throws Error with @p operation.
Reply execute(MYSQL* client, std::string_view sql, std::string_view operation);

/// Runs several statements, separated by `;`, in one round trip; the connection must allow it. Throws on the first error:
/// what came before it has been done, what comes after has not.
std::vector<Reply> execute_all(MYSQL* client, std::string_view sql, std::string_view operation);

/// True when the server said with its last reply that a transaction is open. Error replies don't carry it:
/// see `refresh_status`.
bool in_transaction(const MYSQL* client) noexcept;

/// Asks the server whether a transaction is open, after an error. One round trip; false when the connection is gone.
bool refresh_status(MYSQL* client) noexcept;

}  // namespace commitq::mysql
