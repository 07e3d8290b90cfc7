#include <core/signals.h>
#include <fmt/format.h>
#include <mysql/error_map.h>
#include <mysql/session.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

namespace commitq::mysql {
namespace {

constexpr std::string_view kConnect = "connect";

/// libmysqlclient gives a call up when a second signal interrupts it, and a host may have a timer.
class Undisturbed {
    core::SignalsBlocked blocked_{core::Signals::passing};
};

unsigned whole_seconds(std::chrono::milliseconds time) {
    return static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(time).count());
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

bool verifies(TlsMode mode) { return mode == TlsMode::verify_ca || mode == TlsMode::verify_identity; }

Error tls_failed(TlsMode mode, std::string_view reason, unsigned server_errno = 0, const char* sqlstate = "") {
    return Error{{.code = Errc::tls_failed,
                  .operation = std::string{kConnect},
                  .message = fmt::format("no connection with tls={}: {}", to_string(mode), reason),
                  .server_errno = server_errno,
                  .sqlstate = sqlstate,
                  .transaction = TransactionState::none}};
}

/// The client libraries say no more of a missing file than that a certificate doesn't hold, or less.
void check_authority_file(const ConnectOptions& options) {
    if (!verifies(options.tls)) {
        return;
    }
    if (std::FILE* file = std::fopen(options.tls_ca.c_str(), "re")) {
        std::fclose(file);
        return;
    }
    throw tls_failed(options.tls, fmt::format("the file of tls_ca, {}, can't be read: {}", options.tls_ca,
                                              std::generic_category().message(errno)));
}

#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)

void set_tls(MYSQL* client, const ConnectOptions& options) {
    // On a unix socket `preferred` is none, as in libmysqlclient. ENFORCE, whatever its name says, means no more than to use
    // TLS if the server offers it: `check_encrypted` looks whether it did.
    const bool preferred_here = options.tls == TlsMode::preferred && options.socket.empty();
    const my_bool use = preferred_here || options.tls > TlsMode::preferred ? 1 : 0;
    // It checks the authority and the name, or nothing: `verify_ca` becomes the stricter `verify_identity`. Without `tls_ca`
    // it would trust what the system trusts. Since 3.4 it is on unless it is turned off, and takes TLS to be a must then.
    const my_bool verify = verifies(options.tls) ? 1 : 0;
    mysql_optionsv(client, MYSQL_OPT_SSL_ENFORCE, &use);
    mysql_optionsv(client, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    if (verify != 0) {
        mysql_optionsv(client, MYSQL_OPT_SSL_CA, options.tls_ca.c_str());
    }
}

int socket_of(MYSQL* client) { return static_cast<int>(mysql_get_socket(client)); }

#else

void set_tls(MYSQL* client, const ConnectOptions& options) {
    const unsigned mode = [&] {
        switch (options.tls) {
            case TlsMode::off:
                return static_cast<unsigned>(SSL_MODE_DISABLED);
            case TlsMode::required:
                return static_cast<unsigned>(SSL_MODE_REQUIRED);
            case TlsMode::verify_ca:
                return static_cast<unsigned>(SSL_MODE_VERIFY_CA);
            case TlsMode::verify_identity:
                return static_cast<unsigned>(SSL_MODE_VERIFY_IDENTITY);
            case TlsMode::preferred:
                break;
        }
        return static_cast<unsigned>(SSL_MODE_PREFERRED);
    }();
    mysql_options(client, MYSQL_OPT_SSL_MODE, &mode);
    if (verifies(options.tls)) {
        mysql_options(client, MYSQL_OPT_SSL_CA, options.tls_ca.c_str());
    }
    // caching_sha2_password without TLS: the password goes encrypted with the server's key, as Connector/C does it.
    const bool fetch_key = true;
    mysql_options(client, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &fetch_key);
}

int socket_of(MYSQL* client) { return static_cast<int>(client->net.fd); }

#endif

/// Connector/C falls back to a connection without TLS. What went over it is the login, and nothing else.
void check_encrypted(MYSQL* client, const ConnectOptions& options) {
    if (options.tls > TlsMode::preferred && mysql_get_ssl_cipher(client) == nullptr) {
        throw tls_failed(options.tls, options.socket.empty()
                                          ? "the server offers no TLS"
                                          : "this client library uses no TLS on a unix socket, or the"
                                            " server offers none");
    }
}

/// What @p client says of a connection that could not be made.
Error connect_error(MYSQL* client, const ConnectOptions& options) {
    const unsigned number = mysql_errno(client);
    const Meaning meaning = connect_meaning_of(number);
    if (meaning.code == Errc::tls_failed) {
        return tls_failed(options.tls, mysql_error(client), number, mysql_sqlstate(client));
    }
    Error::Parts parts = error_of(client, kConnect).parts();
    parts.code = meaning.code;
    parts.repeat = meaning.repeat;
    parts.transaction = meaning.transaction;
    return Error{std::move(parts)};
}

/// Settings of the library's own sessions, whatever the server's defaults are. Lock waits are short, so that no loop
/// stands still for long; what waits is run again. Results come as they are stored, as not every `ConnectOptions::charset` has
/// all of ASCII: a name would come with another character in it.
constexpr std::string_view kLibrarySession =
    "SET SESSION autocommit = 1, SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION time_zone = '+00:00',"
    " SESSION innodb_lock_wait_timeout = 2, SESSION lock_wait_timeout = 5, SESSION sql_safe_updates = 0,"
    " SESSION completion_type = 'NO_CHAIN', SESSION character_set_results = NULL;"
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

}  // namespace

Session::Session(const ConnectOptions& options, Purpose purpose) : client_{mysql_init(nullptr)} {
    if (!client_) {
        throw Error{{.code = Errc::connection_lost,
                     .operation = std::string{kConnect},
                     .message = "out of memory",
                     .repeat = Repeat::reconnect,
                     .transaction = TransactionState::none}};
    }
    const Undisturbed undisturbed;
    check_authority_file(options);
    configure(options);
    const bool by_socket = !options.socket.empty();
    const unsigned long flags = purpose == Purpose::library ? CLIENT_MULTI_STATEMENTS : 0;
    if (!mysql_real_connect(client_.get(), by_socket ? nullptr : options.host.c_str(), options.user.c_str(),
                            options.password.c_str(), or_null(options.database), by_socket ? 0 : options.port,
                            or_null(options.socket), flags)) {
        throw connect_error(client_.get(), options);
    }
    check_encrypted(client_.get(), options);
    {
        const std::scoped_lock lock{closing_};
        socket_ = socket_of(client_.get());
    }
    if (purpose == Purpose::library) {
        execute_all(kLibrarySession, kConnect);
        shorten_row_images();
    }
}

/// Asks for row images of the changed columns only: each change of a job would otherwise write its inline payload to the
/// binlog twice. It takes a privilege that an application's user need not have; without it, all works the same.
void Session::shorten_row_images() {
    try {
        mysql::execute(client_.get(), "SET SESSION binlog_row_image = 'MINIMAL'", kConnect);
    } catch (const Error& error) {
        if (needs_reconnect(error)) {
            throw;
        }
    }
}

Session::~Session() {
    const std::scoped_lock lock{closing_};
    socket_ = -1;
    client_.reset();
}

void Session::configure(const ConnectOptions& options) {
    MYSQL* client = client_.get();
    const unsigned connect = whole_seconds(options.connect_timeout);
    const unsigned read = whole_seconds(options.read_timeout);
    const unsigned write = whole_seconds(options.write_timeout);
    mysql_options(client, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
    mysql_options(client, MYSQL_OPT_READ_TIMEOUT, &read);
    mysql_options(client, MYSQL_OPT_WRITE_TIMEOUT, &write);
    mysql_options(client, MYSQL_SET_CHARSET_NAME, options.charset.c_str());
    const unsigned protocol = options.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    mysql_options(client, MYSQL_OPT_PROTOCOL, &protocol);
    // Else a server, or what poses as one, could ask for any file that this process can read.
    const unsigned local_files = 0;
    mysql_options(client, MYSQL_OPT_LOCAL_INFILE, &local_files);
    set_tls(client, options);
}

Reply Session::execute(std::string_view sql, std::string_view operation) {
    const Undisturbed undisturbed;
    try {
        return mysql::execute(client_.get(), sql, operation);
    } catch (const Error& error) {
        usable_ = usable_ && !needs_reconnect(error);
        throw;
    }
}

std::vector<Reply> Session::execute_all(std::string_view sql, std::string_view operation) {
    const Undisturbed undisturbed;
    try {
        return mysql::execute_all(client_.get(), sql, operation);
    } catch (const Error& error) {
        usable_ = usable_ && !needs_reconnect(error);
        throw;
    }
}

std::vector<Reply> Session::begin(const std::string& sql, std::string_view operation) {
    return execute_all("SET SESSION wait_timeout=5;START TRANSACTION;" + sql, operation);
}

std::vector<Reply> Session::commit(const std::string& sql, std::string_view operation) {
    return execute_all(sql + (sql.empty() ? "" : ";") + "COMMIT;SET SESSION wait_timeout=DEFAULT", operation);
}

void Session::rollback(std::string_view operation) {
    execute_all("ROLLBACK;SET SESSION wait_timeout=DEFAULT", operation);
}

void Session::interrupt() noexcept {
    const std::scoped_lock lock{closing_};
    if (socket_ >= 0) {
        ::shutdown(socket_, SHUT_RDWR);
    }
}

bool is_mariadb_server(MYSQL* client) noexcept {
    return std::string_view{mysql_get_server_info(client)}.find("MariaDB") != std::string_view::npos;
}

}  // namespace commitq::mysql
