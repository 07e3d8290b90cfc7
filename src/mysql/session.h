// A connection of commitq's own.
#pragma once

#include <commitq/connect_options.h>
#include <mysql/statement.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::mysql {

/// What a session is for, which decides its settings.
enum class Purpose {
    library,  ///< READ COMMITTED, UTC, strict, short lock waits, several statements in one round trip.
    handler,  ///< The server's defaults, one statement at a time: a user's SQL runs on it.
};

/// An open connection. Ownership: the handle. Threading: one thread at a time, but `interrupt` from any.
/// Auto-reconnect is off, as it is by default in both client libraries: a new connection is a new Session.
class Session {
public:
    /// Connects and sets the session up. Throws Error.
    Session(const ConnectOptions& options, Purpose purpose);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session();

    /// As the functions in statement.h; an error that ends the connection is remembered.
    Reply execute(std::string_view sql, std::string_view operation);
    std::vector<Reply> execute_all(std::string_view sql, std::string_view operation);

    /// A transaction of several round trips: `begin` with its first statements, `commit` with its last ones, if any. When
    /// nothing more comes for five seconds, the server ends it: the locks of a process that froze, or was cut off, must not
    /// keep jobs from others until the server notices by itself, which takes hours (tests `KeepsNoJobFromOthersForLong`).
    std::vector<Reply> begin(const std::string& sql, std::string_view operation);
    std::vector<Reply> commit(const std::string& sql, std::string_view operation);
    void rollback(std::string_view operation);

    [[nodiscard]] MYSQL* client() const noexcept { return client_.get(); }
    /// False after an error that ends the connection.
    [[nodiscard]] bool usable() const noexcept { return usable_; }

    /// Makes a call that waits for the server fail at once, as if the connection broke. Any thread.
    void interrupt() noexcept;

private:
    void configure(const ConnectOptions& options);
    void shorten_row_images();

    struct Close {
        void operator()(MYSQL* client) const noexcept { mysql_close(client); }
    };
    std::unique_ptr<MYSQL, Close> client_;
    std::mutex closing_;  ///< `interrupt` must not meet a socket number that was closed and given to somebody else.
    int socket_ = -1;
    bool usable_ = true;
};

/// `SERVER_VERSION()` facts that a caller decides by.
bool is_mariadb_server(MYSQL* client) noexcept;

}  // namespace commitq::mysql
