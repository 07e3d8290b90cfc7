#include <mysql/error_map.h>

#include <string>

namespace commitq::mysql {

// Numbers are written out: the two client libraries bring different lists of server errors. Source: the MySQL error
// reference and MariaDB's list of error codes.
Meaning meaning_of(unsigned server_errno) noexcept {
    switch (server_errno) {
        case 1213:  // ER_LOCK_DEADLOCK
        case 1614:  // ER_XA_RBDEADLOCK
        case 3101:  // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: Group Replication certification
        case 1020:  // ER_CHECKREAD: MariaDB, innodb_snapshot_isolation
            return {Errc::deadlock, Repeat::transaction, TransactionState::rolled_back};
        case 1205:  // ER_LOCK_WAIT_TIMEOUT
        case 3572:  // ER_LOCK_NOWAIT
        case 1613:  // ER_XA_RBTIMEOUT
            return {Errc::lock_timeout, Repeat::statement, TransactionState::intact};
        case 1317:  // ER_QUERY_INTERRUPTED: KILL QUERY
        case 3024:  // ER_QUERY_TIMEOUT: max_execution_time
        case 1969:  // ER_STATEMENT_TIMEOUT of MariaDB
            return {Errc::server, Repeat::statement, TransactionState::intact};
        case 1040:  // ER_CON_COUNT_ERROR
        case 1053:  // ER_SERVER_SHUTDOWN
        case 1077:  // ER_NORMAL_SHUTDOWN
        case 1079:  // ER_SHUTDOWN_COMPLETE
        case 1080:  // ER_FORCING_CLOSE
        case 1129:  // ER_HOST_IS_BLOCKED
        case 1152:  // ER_ABORTING_CONNECTION
        case 1158:  // ER_NET_READ_ERROR
        case 1159:  // ER_NET_READ_INTERRUPTED
        case 1160:  // ER_NET_ERROR_ON_WRITE
        case 1161:  // ER_NET_WRITE_INTERRUPTED
        case 1184:  // ER_NEW_ABORTING_CONNECTION
        case 1203:  // ER_TOO_MANY_USER_CONNECTIONS
        case 1226:  // ER_USER_LIMIT_REACHED
        case 1927:  // ER_CONNECTION_KILLED of MariaDB
        case 3032:  // ER_SERVER_OFFLINE_MODE
        case 3168:  // ER_SERVER_ISNT_AVAILABLE
        case 3169:  // ER_SESSION_WAS_KILLED
        case 4031:  // ER_CLIENT_INTERACTION_TIMEOUT
        case 1047:  // ER_UNKNOWN_COM_ERROR: Galera, node not ready
            return {Errc::connection_lost, Repeat::reconnect, TransactionState::lost};
        case 1290:  // ER_OPTION_PREVENTS_STATEMENT: read_only, super_read_only
        case 1792:  // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
        case 1836:  // ER_READ_ONLY_MODE
        case 1874:  // ER_INNODB_READ_ONLY
            return {Errc::read_only, Repeat::reconnect, TransactionState::intact};
        case 1044:  // ER_DBACCESS_DENIED_ERROR
        case 1045:  // ER_ACCESS_DENIED_ERROR
        case 1142:  // ER_TABLEACCESS_DENIED_ERROR
        case 1143:  // ER_COLUMNACCESS_DENIED_ERROR
        case 1227:  // ER_SPECIFIC_ACCESS_DENIED_ERROR
        case 1698:  // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
            return {Errc::access_denied, Repeat::never, TransactionState::intact};
        case 1046:  // ER_NO_DB_ERROR
        case 1049:  // ER_BAD_DB_ERROR
        case 1146:  // ER_NO_SUCH_TABLE
            return {Errc::schema_missing, Repeat::never, TransactionState::intact};
        case 1054:  // ER_BAD_FIELD_ERROR
            return {Errc::schema_too_old, Repeat::never, TransactionState::intact};
        case 1153:  // ER_NET_PACKET_TOO_LARGE: the server closes the connection after it
        case CR_NET_PACKET_TOO_LARGE:
            return {Errc::too_large, Repeat::never, TransactionState::lost};
        default:
            if (server_errno >= 2000 &&
                server_errno < 3000) {  // CR_*: the client's own; the connection's state is unknown
                return {Errc::connection_lost, Repeat::reconnect, TransactionState::lost};
            }
            return {Errc::server, Repeat::never, TransactionState::intact};
    }
}

Meaning connect_meaning_of(unsigned server_errno) noexcept {
    switch (server_errno) {
        case CR_SSL_CONNECTION_ERROR:
        case 3159:  // ER_SECURE_TRANSPORT_REQUIRED
            return {Errc::tls_failed, Repeat::never, TransactionState::none};
        case 2059:  // CR_AUTH_PLUGIN_CANNOT_LOAD
        case 2061:  // CR_AUTH_PLUGIN_ERR
            return {Errc::access_denied, Repeat::never, TransactionState::none};
        default: {
            Meaning meaning = meaning_of(server_errno);
            meaning.transaction = TransactionState::none;
            return meaning;
        }
    }
}

bool quotes_values(unsigned server_errno, std::string_view sqlstate) noexcept {
    switch (server_errno) {
        case 1062:  // ER_DUP_ENTRY
        case 1064:  // ER_PARSE_ERROR
        case 1292:  // ER_TRUNCATED_WRONG_VALUE
        case 1300:  // ER_INVALID_CHARACTER_STRING
        case 1366:  // ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
        case 1367:  // ER_ILLEGAL_VALUE_FOR_TYPE
        case 1411:  // ER_WRONG_VALUE_FOR_TYPE
        case 1470:  // ER_WRONG_STRING_LENGTH
        case 1525:  // ER_WRONG_VALUE
        case 1526:  // ER_NO_PARTITION_FOR_GIVEN_VALUE
        case 1586:  // ER_DUP_ENTRY_WITH_KEY_NAME
        case 1643:  // ER_SIGNAL_NOT_FOUND: a trigger's own words, as with the next one
        case 1644:  // ER_SIGNAL_EXCEPTION
        case 1690:  // ER_DATA_OUT_OF_RANGE
        case 1761:  // ER_FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO
        case 1762:  // ER_FOREIGN_DUPLICATE_KEY_WITHOUT_CHILD_INFO
        case 1918:  // ER_BAD_DATA of MariaDB
        case 3854:  // ER_CANNOT_CONVERT_STRING
            return true;
        default:
            return sqlstate == "45000";  // what triggers signal, under any number
    }
}

Error error_of(MYSQL* client, std::string_view operation) {
    const unsigned number = mysql_errno(client);
    const Meaning meaning = meaning_of(number);
    return Error{{.code = meaning.code,
                  .operation = std::string{operation},
                  .message = quotes_values(number, mysql_sqlstate(client))
                                 ? "the server refused the statement; its text is left out, as it may quote values"
                                 : mysql_error(client),
                  .server_errno = number,
                  .sqlstate = mysql_sqlstate(client),
                  .repeat = meaning.repeat,
                  .transaction = meaning.transaction}};
}

bool needs_reconnect(const Error& error) noexcept {
    return error.repeat() == Repeat::reconnect || error.code() == Errc::commit_in_doubt ||
           error.code() == Errc::tls_failed || error.transaction() == TransactionState::lost;
}

bool is_refusal(const Error& error) noexcept { return error.code() == Errc::server && error.repeat() == Repeat::never; }

void rethrow_with(const Error& error, TransactionState transaction, Repeat repeat) {
    Error::Parts parts = error.parts();
    parts.transaction = transaction;
    parts.repeat = repeat;
    throw Error{std::move(parts)};
}

}  // namespace commitq::mysql
