#include <commitq/transaction.h>
#include <mysql/error_map.h>
#include <mysql/session.h>

#include <utility>

namespace commitq {
namespace {

mysql::Session& require_open(const std::shared_ptr<mysql::Session>& session) {
    if (!session) {
        throw Error{{.code = Errc::wrong_state,
                     .operation = "transaction",
                     .message = "it has ended",
                     .transaction = TransactionState::none}};
    }
    return *session;
}

void end_quietly(mysql::Session& session) noexcept {
    try {
        session.execute("ROLLBACK AND NO CHAIN NO RELEASE", "rollback");
    } catch (...) {  // the connection is broken, and the server has rolled back
    }
}

}  // namespace

Handle::Handle(Transaction& transaction) noexcept
    : client_{transaction.session_ ? transaction.session_->client() : nullptr}, library_{client_library()} {}

Transaction::Transaction(std::shared_ptr<mysql::Session> session)
    : session_{std::move(session)}, committed_{std::make_shared<bool>(false)} {
    session_->execute("START TRANSACTION", "begin");
}

Transaction::Transaction(Transaction&& other) noexcept
    : session_{std::move(other.session_)}, committed_{other.committed_} {}

Transaction& Transaction::operator=(Transaction&& other) noexcept {
    if (this != &other) {
        rollback();
        session_ = std::move(other.session_);
        committed_ = other.committed_;
    }
    return *this;
}

Transaction::~Transaction() { rollback(); }

std::uint64_t Transaction::execute(std::string_view sql) {
    return require_open(session_).execute(sql, "transaction execute").affected;
}

std::vector<Row> Transaction::query(std::string_view sql) {
    mysql::Reply reply = require_open(session_).execute(sql, "transaction query");
    std::vector<Row> rows;
    while (reply.rows.next()) {
        Row& row = rows.emplace_back();
        for (unsigned column = 0; column < reply.rows.columns(); ++column) {
            row.push_back(reply.rows.is_null(column) ? std::nullopt
                                                     : std::optional<std::string>{reply.rows.text(column)});
        }
    }
    return rows;
}

void Transaction::commit() {
    mysql::Session& session = require_open(session_);
    const std::shared_ptr<mysql::Session> ending = std::move(session_);
    try {
        // Whatever the session's completion_type is: the connection goes back to the pool, with no transaction open.
        session.execute("COMMIT AND NO CHAIN NO RELEASE", "commit");
    } catch (const Error& error) {
        if (!mysql::needs_reconnect(error)) {
            end_quietly(session);  // the server has, most likely; the session goes back to others
            throw;
        }
        Error::Parts parts = error.parts();
        parts.code = Errc::commit_in_doubt;
        parts.repeat = Repeat::never;
        parts.transaction = TransactionState::in_doubt;
        throw Error{std::move(parts)};
    }
    *committed_ = true;
}

void Transaction::rollback() noexcept {
    if (const std::shared_ptr<mysql::Session> ending = std::move(session_)) {
        end_quietly(*ending);
    }
}

bool Transaction::is_open() const noexcept { return session_ != nullptr; }

}  // namespace commitq
