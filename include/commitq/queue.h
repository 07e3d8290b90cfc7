/// @file
/// The producer's side: jobs that commit together with your rows.
///
///     commitq::Queue queue{"orders"};
///     mysql_query(db, "START TRANSACTION");
///     save_order(db, order);
///     queue.enqueue(db, "order.created", json, {.delay = 5s});
///     mysql_commit(db);                 // the order and its job exist, or neither does
///     queue.notify();                   // optional: wakes workers of this process at once
///
/// Guarantee: a job exists if and only if the transaction that enqueued it committed. `enqueue` writes by INSERT only:
/// no BEGIN, COMMIT, SAVEPOINT, SET or DDL, no hidden retry. It works at any isolation level, inside XA, and under
/// any character set, `sql_mode` and time zone of your session. It does set the session's LAST_INSERT_ID().
#pragma once

#include <commitq/export.h>
#include <commitq/handle.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commitq {

class Worker;

namespace queue {
class Wakeable;
}

/// The primary key of a job. Given at INSERT, so ids are not in commit order and may have holes.
using JobId = std::uint64_t;

/// Small named values that travel with a job, such as `traceparent`. Names are 1-64 characters of `[A-Za-z0-9_.-]`;
/// values are UTF-8 without control characters; at most 4,096 bytes in all, three more counted for each header.
using Headers = std::map<std::string, std::string, std::less<>>;

/// How one job is enqueued.
struct EnqueueOptions {
    int priority = 5;  ///< 0 (first) to 9 (last).
    /// Runs no earlier than this long from now, by the server's clock; 0 to 10 years.
    std::chrono::microseconds delay{0};
    /// Runs no earlier than this time, up to the year 9999; a time in the past means now. Excludes `delay`.
    std::optional<std::chrono::system_clock::time_point> at{};
    /// How often it may be attempted before it is dead, 1 to 10,000. Default: what the handler's options say.
    std::optional<int> max_attempts{};
    Headers headers{};  ///< See `Headers`.
};

/// One job for `Queue::enqueue_many`.
struct NewJob {
    std::string type{};        ///< 1-128 printable ASCII characters without blanks.
    std::string payload{};     ///< Any bytes.
    EnqueueOptions options{};  ///< As for `enqueue`.
};

/// Settings of a `Queue`.
struct QueueOptions {
    std::string prefix = "commitq_";  ///< Of the table names; `[A-Za-z0-9_]+`, at most 32 characters.
    /// The schema of the tables; `[A-Za-z0-9_$-]+`, at most 64 characters. Empty: the connection's current one.
    std::string database{};
    /// Longest payload in bytes, any number; default 16 MiB. The server's and the client's `max_allowed_packet` bound
    /// it too: a payload takes twice its size in the statement.
    std::size_t max_payload = std::size_t{16} << 20U;
};

/// Enqueues jobs into one named queue. Ownership: holds no connection. Threading: thread-safe. Copies share state.
class COMMITQ_EXPORT Queue {
public:
    /// @param name 1-64 printable ASCII characters without blanks; compared byte by byte.
    /// @param options see `QueueOptions`.
    /// @throws Error `invalid_argument`.
    explicit Queue(std::string name, QueueOptions options = {});

    /// The queue's name.
    [[nodiscard]] const std::string& name() const noexcept;

    /// Adds one job to the transaction that is open on @p db.
    /// Round trips: one; two for a payload above 1 KiB, three above 16 KiB (the server is asked for its packet size).
    /// The first call of a Queue also reads the schema's version; at REPEATABLE READ that fixes the transaction's
    /// snapshot, if nothing has yet.
    /// @param db the connection, inside a transaction: one that the server says is open. With `autocommit=0` that is
    ///        after the first statement on a table, or after START TRANSACTION.
    /// @param type 1-128 printable ASCII characters without blanks; names the handler.
    /// @param payload any bytes; stored as they are.
    /// @param options see `EnqueueOptions`.
    /// @returns the job's id.
    /// @throws Error `invalid_argument`, `too_large`, `not_in_transaction`: nothing was sent, the transaction is
    ///         intact. `deadlock`: the server rolled the transaction back, and enqueue refuses the connection until a
    ///         new one begins. `lock_timeout`: `Error::transaction` tells whether only the statement or all of it was
    ///         rolled back (`innodb_rollback_on_timeout`). `connection_lost`: the transaction is gone. When a second
    ///         statement fails, `Error::transaction` is `partial` (a payload without its job is written): roll back.
    JobId enqueue(Handle db, std::string_view type, std::string_view payload, const EnqueueOptions& options = {}) const;

    /// Adds many jobs to the open transaction, in statements of up to 256 KiB (one job may be larger), or what the
    /// packet size allows if that is less.
    /// Round trips: one for each, one more for each with payloads above 1 KiB, and one to ask for the packet size.
    /// @returns the ids, in the order of @p jobs.
    /// @throws Error as `enqueue`. Input is checked before anything is sent. When a later statement fails,
    ///         `Error::transaction` is `partial`: roll back.
    std::vector<JobId> enqueue_many(Handle db, std::span<const NewJob> jobs) const;

    /// Adds one job in a transaction of its own: for a connection that is in no transaction, on purpose.
    /// A payload above 1 KiB is written first, so the job never exists without it.
    /// @throws Error as `enqueue`; `wrong_state` if a transaction is open. After `connection_lost` the job may exist:
    ///         `Error::transaction` is `in_doubt` then.
    JobId enqueue_autocommit(Handle db, std::string_view type, std::string_view payload,
                             const EnqueueOptions& options = {}) const;

    /// Wakes the workers of this process that follow this queue (`Worker::follow`), so that they claim at once.
    /// Call it after COMMIT. No round trip. Never throws.
    void notify() const noexcept;

private:
    friend class Worker;
    void follow(std::weak_ptr<queue::Wakeable> follower) const;

    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace commitq
