// What the examples share, so that each can show one thing: a connection, two ways to run SQL, and a database of its own.
// Your service has all of this already.
#pragma once

#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace examples {

/// A statement, or connecting, failed.
class SqlError : public std::runtime_error {
public:
    explicit SqlError(MYSQL* db) : std::runtime_error{mysql_error(db)}, number_{mysql_errno(db)} {}
    [[nodiscard]] unsigned number() const noexcept { return number_; }

private:
    unsigned number_;
};

struct Close {
    void operator()(MYSQL* db) const noexcept { mysql_close(db); }
};
using Connection = std::unique_ptr<MYSQL, Close>;

/// The client libraries agree on everything that the examples use, except for how TLS is asked for.
inline void set_tls(MYSQL* db, const commitq::ConnectOptions& options) {
    using commitq::TlsMode;
    if (options.tls >= TlsMode::verify_ca) {
        mysql_options(db, MYSQL_OPT_SSL_CA, options.tls_ca.c_str());
    }
#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)
    // Only "if the server offers it", in spite of the name: see `connect`.
    const char use =
        options.tls == TlsMode::off || (options.tls == TlsMode::preferred && !options.socket.empty()) ? 0 : 1;
    const char verify = options.tls >= TlsMode::verify_ca ? 1 : 0;
    mysql_options(db, MYSQL_OPT_SSL_ENFORCE, &use);
    mysql_options(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
#else
    constexpr mysql_ssl_mode kModes[] = {SSL_MODE_DISABLED, SSL_MODE_PREFERRED, SSL_MODE_REQUIRED, SSL_MODE_VERIFY_CA,
                                         SSL_MODE_VERIFY_IDENTITY};
    const auto mode = static_cast<unsigned>(kModes[static_cast<int>(options.tls)]);
    const bool fetch_key = true;
    mysql_options(db, MYSQL_OPT_SSL_MODE, &mode);
    mysql_options(db, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &fetch_key);
#endif
}

inline Connection connect(const commitq::ConnectOptions& options) {
    Connection db{mysql_init(nullptr)};
    if (!db) {
        throw std::bad_alloc{};
    }
    const auto seconds = [](std::chrono::milliseconds time) {
        return static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(time).count());
    };
    const unsigned connect_timeout = seconds(options.connect_timeout);
    const unsigned read_timeout = seconds(options.read_timeout);
    const unsigned write_timeout = seconds(options.write_timeout);
    const bool by_socket = !options.socket.empty();
    const unsigned protocol = by_socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    mysql_options(db.get(), MYSQL_OPT_CONNECT_TIMEOUT, &connect_timeout);
    mysql_options(db.get(), MYSQL_OPT_READ_TIMEOUT, &read_timeout);
    mysql_options(db.get(), MYSQL_OPT_WRITE_TIMEOUT, &write_timeout);
    mysql_options(db.get(), MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(db.get(), MYSQL_SET_CHARSET_NAME, options.charset.c_str());
    set_tls(db.get(), options);
    if (mysql_real_connect(db.get(), by_socket ? nullptr : options.host.c_str(), options.user.c_str(),
                           options.password.c_str(), options.database.empty() ? nullptr : options.database.c_str(),
                           options.port, by_socket ? options.socket.c_str() : nullptr, 0) == nullptr) {
        throw SqlError{db.get()};
    }
    if (options.tls >= commitq::TlsMode::required && mysql_get_ssl_cipher(db.get()) == nullptr) {
        throw std::runtime_error{"the server offers no TLS"};
    }
    return db;
}

/// Runs a statement that gives rows. Values in @p sql come from `commitq::sql_literal`.
inline std::vector<commitq::Row> query(MYSQL* db, std::string_view sql) {
    if (mysql_real_query(db, sql.data(), static_cast<unsigned long>(sql.size())) != 0) {
        throw SqlError{db};
    }
    const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result{mysql_store_result(db), &mysql_free_result};
    if (!result) {
        if (mysql_errno(db) != 0) {
            throw SqlError{db};
        }
        return {};
    }
    std::vector<commitq::Row> rows;
    while (const MYSQL_ROW columns = mysql_fetch_row(result.get())) {
        const unsigned long* lengths = mysql_fetch_lengths(result.get());
        commitq::Row& row = rows.emplace_back(mysql_num_fields(result.get()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (columns[i] != nullptr) {
                row[i].emplace(columns[i], lengths[i]);
            }
        }
    }
    return rows;
}

/// Runs a statement that gives none.
inline void execute(MYSQL* db, std::string_view sql) { query(db, sql); }

/// The one value that @p sql gives; empty for NULL.
inline std::string value(MYSQL* db, std::string_view sql) { return query(db, sql).at(0).at(0).value_or(""); }

/// The server of the environment's COMMITQ_URL.
inline commitq::ConnectOptions server() {
    const char* url = std::getenv("COMMITQ_URL");  // NOLINT(concurrency-mt-unsafe): nobody changes it
    if (url == nullptr || *url == '\0') {
        throw std::runtime_error{"COMMITQ_URL is not set; try: tests/with-server -- PROGRAM"};
    }
    return commitq::ConnectOptions::from_url(url);
}

/// A new database with commitq's tables in it, named after the program; dropped at the end.
class FreshDatabase {
public:
    explicit FreshDatabase(std::string_view program) : options_{server()}, connection_{connect(options_)} {
        const std::string name = fmt::format("{}_{}_{:08x}", program, getpid(), std::random_device{}());
        execute(db(), "CREATE DATABASE " + name + " CHARACTER SET utf8mb4");
        options_.database = name;
        connection_ = connect(options_);
        commitq::Schema{options_}.migrate();  // or from a shell: commitq migrate --url ...
    }
    FreshDatabase(const FreshDatabase&) = delete;
    FreshDatabase& operator=(const FreshDatabase&) = delete;
    ~FreshDatabase() {
        try {
            connection_ = connect(options_);  // whatever state the old one is in
            execute(db(), "SET SESSION lock_wait_timeout = 10");
            execute(db(), "DROP DATABASE " + options_.database);
        } catch (const std::exception& error) {
            fmt::print(stderr, "could not drop the database {}: {}\n", options_.database, error.what());
        }
    }

    [[nodiscard]] const commitq::ConnectOptions& options() const noexcept { return options_; }
    [[nodiscard]] MYSQL* db() const noexcept { return connection_.get(); }

private:
    commitq::ConnectOptions options_;
    Connection connection_;
};

/// Examples check what they claim.
inline void check(bool ok, std::string_view claim) {
    if (!ok) {
        throw std::runtime_error{fmt::format("this should be so, but isn't: {}", claim)};
    }
}

/// Waits for something that another thread, or process, brings about.
inline void wait_until(std::string_view what, const std::function<bool()>& happened) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!happened()) {
        check(std::chrono::steady_clock::now() < deadline, what);
        std::this_thread::sleep_for(5ms);
    }
}

/// The main function of an example: @p body gets a database of its own, by its options and as an open connection.
template <class Body>
int run(std::string_view program, Body body) {
    try {
        const FreshDatabase database{program};
        body(database.options(), database.db());
        fmt::print("{}: all as it should be\n", program);
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::fflush(stdout);
        fmt::print(stderr, "{}: {}\n", program, error.what());
        return EXIT_FAILURE;
    }
}

}  // namespace examples
