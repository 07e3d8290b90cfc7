#include "support/database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <thread>

namespace commitq::test {
namespace {

[[noreturn]] void fail(MYSQL* client, std::string_view what) {
    throw std::runtime_error{fmt::format("{}: {} ({})", what, mysql_error(client), mysql_errno(client))};
}

std::string fresh_name() {
    static std::atomic<int> counter{0};
    std::random_device random;
    return fmt::format("test_{}_{}_{:08x}", getpid(), ++counter, random());
}

}  // namespace

Connection::Connection(const ConnectOptions& options, unsigned long flags) : client_{mysql_init(nullptr)} {
    mysql_options(client_.get(), MYSQL_SET_CHARSET_NAME, options.charset.c_str());
    // The socket, where there is one, as the library itself: with an address the client would ignore it.
    const bool by_socket = !options.socket.empty();
    if (mysql_real_connect(client_.get(), by_socket ? nullptr : options.host.c_str(), options.user.c_str(),
                           options.password.c_str(), options.database.empty() ? nullptr : options.database.c_str(),
                           by_socket ? 0 : options.port, by_socket ? options.socket.c_str() : nullptr,
                           flags) == nullptr) {
        fail(client_.get(), "connect");
    }
}

unsigned Connection::try_run(std::string_view sql) {
    if (mysql_real_query(client_.get(), sql.data(), sql.size()) != 0) {
        return mysql_errno(client_.get());
    }
    if (MYSQL_RES* result = mysql_store_result(client_.get())) {
        mysql_free_result(result);
    }
    return mysql_errno(client_.get());
}

void Connection::run(std::string_view sql) {
    if (try_run(sql) != 0) {
        fail(client_.get(), sql.substr(0, 200));
    }
}

std::vector<Row> Connection::rows(std::string_view sql) {
    if (mysql_real_query(client_.get(), sql.data(), sql.size()) != 0) {
        fail(client_.get(), sql.substr(0, 200));
    }
    std::vector<Row> rows;
    MYSQL_RES* result = mysql_store_result(client_.get());
    if (result == nullptr) {
        if (mysql_errno(client_.get()) != 0) {
            fail(client_.get(), sql.substr(0, 200));
        }
        return rows;
    }
    const unsigned columns = mysql_num_fields(result);
    while (MYSQL_ROW fields = mysql_fetch_row(result)) {
        const unsigned long* lengths = mysql_fetch_lengths(result);
        Row& row = rows.emplace_back();
        for (unsigned i = 0; i < columns; ++i) {
            row.push_back(fields[i] == nullptr ? std::nullopt
                                               : std::optional<std::string>{std::in_place, fields[i], lengths[i]});
        }
    }
    mysql_free_result(result);
    return rows;
}

std::string Connection::value(std::string_view sql) {
    const auto found = rows(sql);
    return found.empty() || found[0].empty() ? std::string{} : found[0][0].value_or(std::string{});
}

long Connection::number(std::string_view sql) { return std::atol(value(sql).c_str()); }

ConnectOptions server_options() {
    const char* url = std::getenv("COMMITQ_URL");  // NOLINT(concurrency-mt-unsafe)
    if (url == nullptr) {
        throw std::runtime_error{"COMMITQ_URL is not set: run the tests with tests/run, or under tests/with-server"};
    }
    return ConnectOptions::from_url(url);
}

Database::Database(bool migrated) : Database{server_options(), migrated} {}

Database::Database(const ConnectOptions& server_of, bool migrated) : options_{server_of} {
    options_.database = fresh_name();
    ConnectOptions server = options_;
    server.database.clear();
    Connection{server}.run(fmt::format("CREATE DATABASE {} CHARACTER SET utf8mb4", options_.database));
    look_anew();
    mariadb_ = look_->value("SELECT VERSION()").find("MariaDB") != std::string::npos;
    if (migrated) {
        Schema{options_}.migrate();
    }
}

Database::~Database() {
    try {
        // A lock that a failed test left behind must not hang the suite.
        look_->try_run("SET SESSION lock_wait_timeout = 10");
        look_->try_run("DROP DATABASE " + options_.database);
    } catch (...) {  // the server may be gone: it was the test's point
    }
}

void Database::look_anew() {
    look_ = std::make_unique<Connection>(options_);
    look_->run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
}

ConnectOptions Database::tcp_options() const {
    ConnectOptions tcp = options_;
    tcp.socket.clear();
    return tcp;
}

long Database::count(std::string_view state) {
    return look_->number(fmt::format("SELECT COUNT(*) FROM commitq_jobs WHERE state='{}'", state));
}

std::string Database::job(JobId id, std::string_view column) {
    return look_->value(fmt::format("SELECT {} FROM commitq_jobs_view WHERE id={}", column, id));
}

JobId Database::enqueue(std::string_view queue, std::string_view type, std::string_view payload,
                        const EnqueueOptions& options) {
    Connection db = connect();
    return Queue{std::string{queue}}.enqueue_autocommit(db, type, payload, options);
}

std::vector<JobId> Database::enqueue_many(std::string_view queue, std::string_view type, int count) {
    const std::vector<NewJob> jobs(static_cast<std::size_t>(count), NewJob{.type = std::string{type}, .payload = "{}"});
    Connection db = connect();
    db.run("START TRANSACTION");
    auto ids = Queue{std::string{queue}}.enqueue_many(db, jobs);
    db.run("COMMIT");
    return ids;
}

std::string Database::violations(Connection& by, std::string_view queue) {
    constexpr std::string_view kNever = "'1970-01-01'";
    const std::string zero = "x'00000000000000000000000000000000'";
    const std::vector<std::pair<std::string, std::string>> rules = {
        {"a running job has an owner, a lease and an attempt within its limit",
         fmt::format("state='running' AND (owner={} OR lease_until={} OR started_at={} OR attempt=0 OR max_attempts=0"
                     " OR attempt>max_attempts)",
                     zero, kNever, kNever)},
        {"only a running job has a lease", fmt::format("state<>'running' AND lease_until<>{}", kNever)},
        {"a finished job has its time, no other has one",
         fmt::format("(state IN ('completed','dead','cancelled')) <> (finished_at<>{})", kNever)},
        {"a completed job names who completed it", fmt::format("state='completed' AND (owner={} OR attempt=0)", zero)},
        {"a job that was never claimed has no trace of a claim",
         fmt::format("attempt=0 AND state='pending' AND last_error IS NULL AND started_at<>{} AND owner={}", kNever,
                     zero)},
        {"a claimed job knows its attempts", "attempt>0 AND max_attempts=0"},
        {"the payload is in one place",
         "(payload_id=0 AND LENGTH(payload)<>payload_size) OR"
         " (payload_id<>0 AND (LENGTH(payload)<>0 OR NOT EXISTS (SELECT 1 FROM"
         " commitq_payloads p WHERE p.id=payload_id AND LENGTH(p.payload)=payload_size)))"},
        {"a due job is not from the future", "state='completed' AND finished_at<started_at"},
    };
    const std::string of_queue = queue.empty() ? "" : fmt::format("queue='{}' AND ", queue);
    std::string found;
    for (const auto& [name, broken] : rules) {
        for (const Row& row :
             by.rows(fmt::format("SELECT id,state FROM commitq_jobs WHERE {}({}) LIMIT 5", of_queue, broken))) {
            found += fmt::format("{}: job {} ({})\n", name, row[0].value_or(""), row[1].value_or(""));
        }
    }
    return found;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

}  // namespace commitq::test
