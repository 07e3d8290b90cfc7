// What integration tests stand on: a database of their own on the server of COMMITQ_URL, and connections to it.
#pragma once

#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::test {

using namespace std::chrono_literals;

/// A plain connection of the "application", through the C API alone. Throws std::runtime_error, so a test fails.
class Connection {
public:
    explicit Connection(const ConnectOptions& options, unsigned long flags = 0);
    operator MYSQL*() const noexcept { return client_.get(); }  // NOLINT: as an application would hold it
    operator Handle() const noexcept { return Handle{client_.get()}; }

    /// Runs one statement; throws on an error.
    void run(std::string_view sql);
    /// Runs one statement; the error number, 0 for none.
    unsigned try_run(std::string_view sql);
    std::vector<Row> rows(std::string_view sql);
    /// The first column of the first row; empty for none or NULL.
    std::string value(std::string_view sql);
    long number(std::string_view sql);
    [[nodiscard]] unsigned long id() const { return mysql_thread_id(client_.get()); }

private:
    struct Close {
        void operator()(MYSQL* client) const noexcept { mysql_close(client); }
    };
    std::unique_ptr<MYSQL, Close> client_;
};

/// Above what stands in the job's own row.
inline const std::string kLongPayload(5'000, 'x');

/// A database with a fresh name, migrated, dropped at the end.
class Database {
public:
    /// @param migrated false: without tables.
    explicit Database(bool migrated = true);
    /// On another server than that of COMMITQ_URL.
    explicit Database(const ConnectOptions& server, bool migrated = true);
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    ~Database();

    [[nodiscard]] const ConnectOptions& options() const noexcept { return options_; }
    /// As `options`, by TCP: for proxies.
    [[nodiscard]] ConnectOptions tcp_options() const;
    [[nodiscard]] Connection connect() const { return Connection{options_}; }
    [[nodiscard]] const std::string& name() const noexcept { return options_.database; }
    [[nodiscard]] bool is_mariadb() const noexcept { return mariadb_; }

    /// A connection for the test's own looks.
    Connection& look() { return *look_; }
    /// A new one in its place: the server was away.
    void look_anew();
    /// How many jobs are in that state.
    long count(std::string_view state);
    /// One column of one job.
    std::string job(JobId id, std::string_view column);
    /// Enqueues one job in a transaction of its own.
    JobId enqueue(std::string_view queue, std::string_view type, std::string_view payload = "{}",
                  const EnqueueOptions& options = {});
    /// Enqueues @p count jobs in one transaction.
    std::vector<JobId> enqueue_many(std::string_view queue, std::string_view type, int count);

    /// Rows that break an invariant of the job table, as text; empty when all is well. Every transition leaves columns
    /// that fit the state: nothing half-reset.
    std::string violations() { return violations(look()); }
    /// The same by another connection: any thread. @p queue: only of this one; empty: of all.
    static std::string violations(Connection& by, std::string_view queue = {});

private:
    ConnectOptions options_;
    std::unique_ptr<Connection> look_;
    bool mariadb_ = false;
};

/// The options of COMMITQ_URL. Throws when it is not set: a test that needs a server fails without one.
ConnectOptions server_options();

/// Waits until @p condition holds. @returns false after @p limit, which is generous: a test fails on it, never times by it.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = 60s);

}  // namespace commitq::test
