#include <commitq/queue.h>
#include <commitq/schema.h>
#include <core/enqueue.h>
#include <core/names.h>
#include <core/options.h>
#include <fmt/format.h>
#include <mysql/error_map.h>
#include <queue/queue_state.h>
#include <store/enqueue.h>
#include <store/schema.h>

#include <algorithm>
#include <utility>

namespace commitq {
namespace {

constexpr std::string_view kEnqueue = "enqueue";

/// Statements up to this size are sent without asking for the packet size: no server is set lower in earnest
/// (the default was 1 MiB at the least, and is 16 or 64 MiB now).
constexpr std::size_t kSurelyFits = 32 * 1024;
/// Statements of `enqueue_many` are cut at this size, or at the packet size if that is less: larger ones are slower, from
/// 512 KiB on by a fifth (docs/design.md).
constexpr std::size_t kStatementBytes = 256 * 1024;
/// Room for the packet header and what the statement has besides its rows.
constexpr std::size_t kPacketMargin = 1024;

[[noreturn]] void refuse(Errc code, std::string message) {
    throw Error{{.code = code, .operation = std::string{kEnqueue}, .message = std::move(message)}};
}

std::size_t client_packet_limit(MYSQL* client) {
    unsigned long limit = 0;
    if (mysql_get_option(client, MYSQL_OPT_MAX_ALLOWED_PACKET, &limit) != 0 || limit == 0) {
        return std::size_t{64} << 20U;
    }
    return limit;
}

/// Throws the error that is being handled again, with what it left of the caller's transaction. Error replies don't say
/// it: after a deadlock the client still believes in the transaction, and the next INSERT would commit by itself. Asking the
/// server once sets the client's belief right, for us and for the caller.
/// @param partial rows of the same call are in the transaction already.
[[noreturn]] void explain(const Error& error, MYSQL* client, bool in_transaction, bool partial) {
    if (error.server_errno() == 0) {  // our own refusal
        throw;
    }
    if (error.transaction() == TransactionState::lost) {
        if (in_transaction) {
            throw;
        }
        mysql::rethrow_with(error, TransactionState::none, error.repeat());
    }
    const bool open = mysql::refresh_status(client);
    if (!in_transaction) {
        mysql::rethrow_with(error, TransactionState::none, error.repeat());
    }
    if (!open) {
        mysql::rethrow_with(error, TransactionState::rolled_back, Repeat::transaction);
    }
    if (partial) {
        mysql::rethrow_with(error, TransactionState::partial, Repeat::transaction);
    }
    mysql::rethrow_with(error, TransactionState::intact, error.repeat());
}

/// A run of jobs that go into one statement.
using Chunk = std::span<const store::Insert>;

std::vector<Chunk> cut(std::span<const store::Insert> jobs, std::size_t limit) {
    std::vector<Chunk> chunks;
    std::size_t first = 0;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const std::size_t size = store::statement_bytes(jobs[i]);
        if (i > first && bytes + size > limit) {
            chunks.push_back(jobs.subspan(first, i - first));
            first = i;
            bytes = 0;
        }
        bytes += size;
    }
    chunks.push_back(jobs.subspan(first));
    return chunks;
}

/// Inserts jobs in as few statements as fit, the payloads before the jobs that name them.
class Inserter {
public:
    Inserter(MYSQL* client, const store::Tables& tables, std::string_view queue, bool in_transaction)
        : client_{client}, tables_{tables}, queue_{queue}, in_transaction_{in_transaction} {}

    std::vector<JobId> insert(std::span<const store::Insert> jobs) {
        plan(jobs);
        std::vector<JobId> ids;
        ids.reserve(jobs.size());
        for (const Chunk chunk : cut(jobs, limit_)) {
            insert_chunk(chunk, ids);
        }
        return ids;
    }

private:
    /// Checks sizes before anything is sent, asking the server for its limits where they could matter.
    void plan(std::span<const store::Insert> jobs) {
        std::size_t largest = 0;
        std::size_t total = 0;
        for (const store::Insert& job : jobs) {
            largest = std::max(largest, store::statement_bytes(job));
            total += store::statement_bytes(job);
        }
        if (total <= kSurelyFits && jobs.size() == 1) {
            return;
        }
        const store::ServerLimits limits = read_limits();
        step_ = limits.auto_increment_increment;
        const std::size_t packet =
            std::min<std::size_t>(limits.max_allowed_packet, client_packet_limit(client_)) - kPacketMargin;
        if (largest > packet) {
            refuse(Errc::too_large,
                   fmt::format("a statement of {} bytes is above max_allowed_packet ({} bytes)", largest, packet));
        }
        limit_ = std::min(limit_, packet);
    }

    store::ServerLimits read_limits() {
        try {
            return store::read_limits(client_);
        } catch (const Error& error) {
            explain(error, client_, in_transaction_, false);
        }
    }

    void insert_chunk(Chunk chunk, std::vector<JobId>& ids) {
        std::vector<std::uint64_t> payload_ids(chunk.size(), 0);
        const auto is_long = [](const store::Insert& job) { return job.payload.size() > store::kInlinePayload; };
        if (std::any_of(chunk.begin(), chunk.end(), is_long)) {
            std::uint64_t next = send(store::insert_payloads_sql(tables_, chunk));
            for (std::size_t i = 0; i < chunk.size(); ++i) {
                if (is_long(chunk[i])) {
                    payload_ids[i] = std::exchange(next, next + step_);
                }
            }
        }
        JobId next = send(store::insert_jobs_sql(tables_, queue_, chunk, payload_ids));
        for (std::size_t i = 0; i < chunk.size(); ++i) {
            ids.push_back(std::exchange(next, next + step_));
        }
    }

    /// @returns the first id. The server gives the rows of one INSERT ids in sequence, `auto_increment_increment`
    /// apart, in every `innodb_autoinc_lock_mode`, since it knows their number beforehand ("simple inserts").
    std::uint64_t send(const std::string& sql) {
        try {
            const std::uint64_t first = mysql::execute(client_, sql, kEnqueue).insert_id;
            partial_ = true;
            return first;
        } catch (const Error& error) {
            if (!in_transaction_ && error.code() == Errc::connection_lost) {
                // It may have got there, and then it counts.
                mysql::rethrow_with(error, TransactionState::in_doubt, Repeat::never);
            }
            explain(error, client_, in_transaction_, partial_);
        }
    }

    MYSQL* client_;
    const store::Tables& tables_;
    std::string_view queue_;
    bool in_transaction_;
    bool partial_ = false;  ///< Some of the call's rows are written.
    std::uint64_t step_ = 1;
    std::size_t limit_ = kStatementBytes;
};

}  // namespace

Queue::Queue(std::string name, QueueOptions options) {
    core::check_queue_name(kEnqueue, name);
    core::validate(options);
    store::Tables tables{options.prefix, options.database};
    state_ = std::shared_ptr<State>{
        new State{.name = std::move(name), .options = std::move(options), .tables = std::move(tables)}};
}

const std::string& Queue::name() const noexcept { return state_->name; }

namespace {

void check_schema(MYSQL* client, const store::Tables& tables, std::atomic<bool>& checked, bool in_transaction) {
    if (checked.load(std::memory_order_relaxed)) {
        return;
    }
    try {
        store::check_version(client, tables, Schema::kVersion, kEnqueue);
    } catch (const Error& error) {  // at SERIALIZABLE the read locks, so it can deadlock
        explain(error, client, in_transaction, false);
    }
    checked.store(true, std::memory_order_relaxed);
}

void require_transaction(const MYSQL* client) {
    if (!mysql::in_transaction(client)) {
        refuse(Errc::not_in_transaction,
               "no transaction is open on this connection, so the job would not commit together with anything;"
               " enqueue_autocommit does that on purpose");
    }
}

}  // namespace

JobId Queue::enqueue(Handle db, std::string_view type, std::string_view payload, const EnqueueOptions& options) const {
    core::check_enqueue(kEnqueue, type, payload.size(), options, state_->options.max_payload);
    MYSQL* client = mysql::unwrap(db);
    require_transaction(client);
    check_schema(client, state_->tables, state_->schema_checked, true);
    const store::Insert job{.type = type, .payload = payload, .options = &options};
    return Inserter{client, state_->tables, state_->name, true}.insert({&job, 1}).front();
}

std::vector<JobId> Queue::enqueue_many(Handle db, std::span<const NewJob> jobs) const {
    std::vector<store::Insert> inserts;
    inserts.reserve(jobs.size());
    for (const NewJob& job : jobs) {
        core::check_enqueue(kEnqueue, job.type, job.payload.size(), job.options, state_->options.max_payload);
        inserts.push_back({.type = job.type, .payload = job.payload, .options = &job.options});
    }
    MYSQL* client = mysql::unwrap(db);
    require_transaction(client);
    if (inserts.empty()) {
        return {};
    }
    check_schema(client, state_->tables, state_->schema_checked, true);
    return Inserter{client, state_->tables, state_->name, true}.insert(inserts);
}

JobId Queue::enqueue_autocommit(Handle db, std::string_view type, std::string_view payload,
                                const EnqueueOptions& options) const {
    core::check_enqueue(kEnqueue, type, payload.size(), options, state_->options.max_payload);
    MYSQL* client = mysql::unwrap(db);
    if (mysql::in_transaction(client) || (client->server_status & SERVER_STATUS_AUTOCOMMIT) == 0) {
        refuse(Errc::wrong_state, "a transaction is open, or autocommit is off, on this connection: use enqueue");
    }
    check_schema(client, state_->tables, state_->schema_checked, false);
    const store::Insert job{.type = type, .payload = payload, .options = &options};
    return Inserter{client, state_->tables, state_->name, false}.insert({&job, 1}).front();
}

void Queue::follow(std::weak_ptr<queue::Wakeable> follower) const { state_->followers.add(std::move(follower)); }

void Queue::notify() const noexcept { state_->followers.wake(); }

}  // namespace commitq
