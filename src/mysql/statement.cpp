#include <mysql/error_map.h>
#include <mysql/statement.h>

namespace commitq::mysql {
namespace {

Reply read_reply(MYSQL* client, std::string_view operation) {
    // Asked first: when the connection breaks among the rows, Connector/C forgets that there were to be any, and the
    // reply would look like that of a statement without rows.
    if (mysql_field_count(client) != 0) {
        MYSQL_RES* result = mysql_store_result(client);
        if (result == nullptr) {
            throw error_of(client, operation);
        }
        return {.rows = Rows{result}};
    }
    return {.affected = mysql_affected_rows(client), .insert_id = mysql_insert_id(client)};
}

}  // namespace

Reply execute(MYSQL* client, std::string_view sql, std::string_view operation) {
    if (mysql_real_query(client, sql.data(), sql.size()) != 0) {
        throw error_of(client, operation);
    }
    return read_reply(client, operation);
}

std::vector<Reply> execute_all(MYSQL* client, std::string_view sql, std::string_view operation) {
    std::vector<Reply> replies;
    replies.push_back(execute(client, sql, operation));
    for (;;) {
        const int more = mysql_next_result(client);
        if (more < 0) {
            return replies;
        }
        if (more > 0) {
            throw error_of(client, operation);
        }
        replies.push_back(read_reply(client, operation));
    }
}

bool in_transaction(const MYSQL* client) noexcept { return (client->server_status & SERVER_STATUS_IN_TRANS) != 0; }

bool refresh_status(MYSQL* client) noexcept {
    // DO touches no table: it neither starts nor ends a transaction, and its OK packet carries the true status.
    constexpr std::string_view kNothing = "DO 0";
    return mysql_real_query(client, kNothing.data(), kNothing.size()) == 0 && in_transaction(client);
}

}  // namespace commitq::mysql
