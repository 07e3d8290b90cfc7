// From error numbers to what a caller may do next.
#pragma once

#include <commitq/error.h>
#include <mysql/client.h>

#include <string_view>

namespace commitq::mysql {

/// What an error number means. Pure: the table is unit-tested.
struct Meaning {
    Errc code;
    Repeat repeat;
    TransactionState transaction;
};
Meaning meaning_of(unsigned server_errno) noexcept;
/// The same of an error in connecting. No transaction is concerned; and what a person has to mend, such as a certificate that
/// doesn't hold, comes with client errors that on an open connection only mean that it broke.
Meaning connect_meaning_of(unsigned server_errno) noexcept;

/// True for errors whose text, as the server words it, quotes values or the statement, which may be a payload.
bool quotes_values(unsigned server_errno, std::string_view sqlstate) noexcept;

/// The error that @p client has now.
Error error_of(MYSQL* client, std::string_view operation);

/// True when the connection can't be used any more, or must not be: lost, or to a server that became read-only.
bool needs_reconnect(const Error& error) noexcept;

/// True when the server refuses the statement for good: something in it, such as one row of many, is to blame.
bool is_refusal(const Error& error) noexcept;

/// Throws @p error again with another idea of what is left of the transaction.
[[noreturn]] void rethrow_with(const Error& error, TransactionState transaction, Repeat repeat);

}  // namespace commitq::mysql
