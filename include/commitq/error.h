/// @file
/// What commitq throws, and what an error leaves behind.
///
/// One exception class serves all failures. It answers the three questions that a caller has: what happened (`code`),
/// what is the smallest unit that is safe to repeat (`repeat`), and what is left of my transaction (`transaction`).
///
///     try {
///         queue.enqueue(db, "order.created", json);
///     } catch (const commitq::Error& error) {
///         if (error.repeat() == commitq::Repeat::transaction) return run_again_from_begin();
///         throw;
///     }
///
/// Expected results, such as a retry that a handler asks for, are values and never exceptions. Messages hold neither
/// payloads nor SQL values nor passwords.
#pragma once

#include <commitq/export.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace commitq {

/// What happened.
enum class Errc {
    invalid_argument,    ///< Bad input; nothing was sent to the server.
    too_large,           ///< Above the payload limit or the packet size of server or client; nothing was sent.
    not_in_transaction,  ///< `enqueue` outside a transaction; nothing was sent. See `Queue::enqueue_autocommit`.
    deadlock,            ///< 1213 and alike: the server rolled the whole transaction back.
    lock_timeout,        ///< 1205: a lock wait ended. `Error::transaction` says what was rolled back.
    connection_lost,     ///< The connection broke or could not be made; an open transaction on it is gone.
    commit_in_doubt,     ///< The connection broke while COMMIT was under way: it may or may not have happened.
    read_only,           ///< 1290, 1792, 1836: the server takes no writes (after a failover, for example).
    access_denied,       ///< Wrong user, password or privileges.
    tls_failed,          ///< No connection with the TLS that `ConnectOptions::tls`, or the server, asks for.
    schema_missing,      ///< The tables are not there: run `commitq migrate`.
    schema_too_old,      ///< The tables are older than this library: run `commitq migrate`.
    schema_too_new,      ///< The tables are newer than this library: upgrade the library.
    unsupported_server,  ///< The server lacks what commitq stands on, such as a working SKIP LOCKED.
    lease_lost,          ///< The job no longer belongs to this worker; nothing was changed.
    wrong_state,         ///< A call that the object does not allow now (`start` twice, use after a fork, ...).
    server,              ///< Any other error of the server; see `Error::server_errno`.
};

/// The name of @p code as it stands above, for logs.
COMMITQ_EXPORT std::string_view to_string(Errc code) noexcept;

/// The smallest unit that is safe to repeat after an error.
enum class Repeat {
    never,        ///< Repeating gives the same error, or could do the work twice.
    statement,    ///< The failed call itself, in the same transaction.
    transaction,  ///< The whole transaction, from BEGIN, on the same connection.
    reconnect,    ///< The whole transaction, on a new connection.
};

/// What an error left of the transaction that the call ran in.
enum class TransactionState {
    intact,       ///< As it was before the call: it can go on, commit or roll back.
    partial,      ///< Still open, with a part of the call's rows in it: roll it back.
    rolled_back,  ///< The server rolled it back. Statements sent now would no longer belong to it.
    lost,         ///< Gone with its connection.
    in_doubt,     ///< It was being committed when the connection broke: committed or lost.
    none,         ///< There was none.
};

/// The one exception type of commitq (with `LeaseLost`, its subclass for one expected case).
/// Copyable; thread-compatible.
class COMMITQ_EXPORT Error : public std::runtime_error {
public:
    /// What an error consists of. All fields but `code` may be left at their defaults.
    struct Parts {
        Errc code = Errc::server;                                 ///< What happened.
        std::string operation{};                                  ///< Which call: `enqueue`, `claim`, ...
        std::string message{};                                    ///< For people.
        unsigned server_errno = 0;                                ///< MySQL error number, 0 for none.
        std::string sqlstate{};                                   ///< Five characters, or empty.
        Repeat repeat = Repeat::never;                            ///< What may be repeated.
        TransactionState transaction = TransactionState::intact;  ///< What is left of the transaction.
    };

    /// Builds the message `operation: message (errno, sqlstate)`.
    explicit Error(Parts parts);

    /// What happened.
    [[nodiscard]] Errc code() const noexcept { return parts_.code; }
    /// The MySQL error number (server 1xxx-4xxx, client 2xxx), or 0 when the error is not from there.
    [[nodiscard]] unsigned server_errno() const noexcept { return parts_.server_errno; }
    /// The SQLSTATE, or empty.
    [[nodiscard]] std::string_view sqlstate() const noexcept { return parts_.sqlstate; }
    /// The call that failed, such as `enqueue`.
    [[nodiscard]] std::string_view operation() const noexcept { return parts_.operation; }
    /// The smallest unit that is safe to repeat.
    [[nodiscard]] Repeat repeat() const noexcept { return parts_.repeat; }
    /// What is left of the transaction.
    [[nodiscard]] TransactionState transaction() const noexcept { return parts_.transaction; }
    /// All of it, to build a derived error from.
    [[nodiscard]] const Parts& parts() const noexcept { return parts_; }

private:
    Parts parts_;
};

/// Thrown by `JobContext::complete_in` when the job's lease is gone: another worker has it, or had it.
/// The caller's transaction is still open and must be rolled back.
class COMMITQ_EXPORT LeaseLost : public Error {
public:
    using Error::Error;
};

}  // namespace commitq
