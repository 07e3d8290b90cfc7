/// @file
/// A transaction on a connection of commitq's own, for handlers whose effects live in the same database.
///
///     auto tx = job.begin();
///     tx.execute("UPDATE stock SET left_over = left_over - 1 WHERE sku = " + commitq::sql_literal(sku));
///     job.complete_in(tx);
///     tx.commit();                      // effect and completion commit together: exactly once
#pragma once

#include <commitq/export.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commitq {

namespace mysql {
class Session;
}

/// One row of a result; a NULL is `nullopt`.
using Row = std::vector<std::optional<std::string>>;

/// @p text, which must be valid UTF-8, as an SQL literal that means the same in every character set and `sql_mode`:
/// ``_utf8mb4 x'...'``. Use it, or `sql_bytes_literal`, for every value that goes into `Transaction::execute`; it can't
/// be broken out of.
[[nodiscard]] COMMITQ_EXPORT std::string sql_literal(std::string_view text);

/// Any @p bytes as a binary SQL literal: ``x'...'``.
[[nodiscard]] COMMITQ_EXPORT std::string sql_bytes_literal(std::string_view bytes);

/// An open transaction. Ownership: move-only, holds its connection until it ends. Threading: one thread at a time.
/// Lifetime: must end before the handler returns. The destructor rolls back and never throws.
/// Isolation is the server's default for the session; the connection runs with `ConnectOptions::charset`.
class COMMITQ_EXPORT Transaction {
public:
    /// Takes over @p session and starts a transaction on it. Made by `JobContext::begin`, not by users.
    explicit Transaction(std::shared_ptr<mysql::Session> session);
    /// The moved-from object is as after `rollback`.
    Transaction(Transaction&&) noexcept;
    /// Rolls back what this object held.
    Transaction& operator=(Transaction&&) noexcept;
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();

    /// Runs one statement that gives no rows. One round trip.
    /// @returns the number of rows that it changed.
    /// @throws Error; `Error::transaction` says whether this transaction can go on.
    std::uint64_t execute(std::string_view sql);

    /// Runs one statement that gives rows. One round trip.
    /// @throws Error as `execute`.
    [[nodiscard]] std::vector<Row> query(std::string_view sql);

    /// Commits. One round trip. Never sent twice.
    /// @throws Error `commit_in_doubt` when the connection broke under it. Let it leave the handler: the worker then
    ///         reads back whether the job was completed, and doesn't run it again if it was.
    void commit();

    /// Rolls back. Nothing to do when already ended. Never throws: a broken connection has rolled back by itself.
    void rollback() noexcept;

    /// True until `commit` or `rollback`.
    [[nodiscard]] bool is_open() const noexcept;

    /// True when `commit` returned.
    [[nodiscard]] bool committed() const noexcept { return *committed_; }

private:
    friend class Handle;
    friend class JobContext;
    std::shared_ptr<mysql::Session> session_;
    std::shared_ptr<bool> committed_;  ///< Shared with the job that was completed in it, which outlives it.
};

}  // namespace commitq
