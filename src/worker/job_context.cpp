#include <commitq/job_context.h>
#include <mysql/client.h>
#include <mysql/statement.h>
#include <store/finish.h>
#include <worker/run.h>

namespace commitq {

JobId JobContext::id() const noexcept { return run_->job.id; }
std::string_view JobContext::queue() const noexcept { return run_->job.queue; }
std::string_view JobContext::type() const noexcept { return run_->job.type; }
std::string_view JobContext::payload() const noexcept { return run_->job.payload; }
const Headers& JobContext::headers() const noexcept { return run_->headers; }
int JobContext::priority() const noexcept { return run_->job.priority; }
int JobContext::attempt() const noexcept { return run_->job.attempt; }
int JobContext::max_attempts() const noexcept { return run_->job.max_attempts; }
std::chrono::system_clock::time_point JobContext::created_at() const noexcept { return run_->job.created_at; }
std::stop_token JobContext::stop_token() const noexcept { return run_->stop.get_token(); }
StopReason JobContext::stop_reason() const noexcept { return run_->reason.load(); }

Transaction JobContext::begin() {
    if (!run_->services->open_session) {
        throw Error{{.code = Errc::wrong_state,
                     .operation = "begin",
                     .message = "this job runs without a database (testing::perform)",
                     .transaction = TransactionState::none}};
    }
    try {
        return Transaction{run_->services->open_session(false)};
    } catch (const Error& error) {
        if (error.repeat() != Repeat::reconnect) {
            throw;
        }
    }
    return Transaction{run_->services->open_session(true)};  // the kept connection had died
}

void JobContext::complete_in(Handle db) {
    constexpr std::string_view kOperation = "complete_in";
    MYSQL* client = mysql::unwrap(db);
    if (!run_->services->open_session) {
        throw Error{{.code = Errc::wrong_state,
                     .operation = std::string{kOperation},
                     .message = "this job runs without a database (testing::perform)"}};
    }
    if (!mysql::in_transaction(client)) {
        throw Error{{.code = Errc::not_in_transaction,
                     .operation = std::string{kOperation},
                     .message = "no transaction is open on this connection"}};
    }
    const std::string sql =
        store::complete_sql(run_->services->tables, run_->services->owner, {&run_->job.id, 1}, run_->job.attempt);
    if (mysql::execute(client, sql, kOperation).affected != 1) {
        throw LeaseLost{{.code = Errc::lease_lost,
                         .operation = std::string{kOperation},
                         .message = "the job no longer belongs to this worker: roll back"}};
    }
    run_->completed_in = true;
    run_->committed_in.reset();
}

void JobContext::complete_in(Transaction& transaction) {
    complete_in(Handle{transaction});
    run_->committed_in = transaction.committed_;
}

}  // namespace commitq
