// Bytes through a real server: payload, headers, type and error text come back as they went, whatever character set and
// `sql_mode` the session has. The first byte of the input picks the session, the rest is all of these at once.
#include "fuzz/check.h"
#include "support/database.h"

#include <core/headers.h>
#include <core/text.h>
#include <fmt/format.h>
#include <store/finish.h>
#include <store/sql.h>

#include <array>
#include <memory>

namespace commitq::fuzz {
namespace {

using test::Connection;

constexpr std::array<std::string_view, 4> kCharsets{"utf8mb4", "gbk", "sjis", "latin1"};
constexpr std::array<std::string_view, 4> kModes{"''", "DEFAULT", "'NO_BACKSLASH_ESCAPES'", "'ANSI_QUOTES'"};

/// Lives as long as the process.
class Server {
public:
    /// One of the sessions that an application may have.
    Connection& session(std::size_t which) {
        auto& session = sessions_.at(which % sessions_.size());
        if (!session) {
            session = std::make_unique<Connection>(database_.options());
            session->run(fmt::format("SET NAMES {}", kCharsets.at(which % kCharsets.size())));
            session->run(fmt::format("SET SESSION sql_mode = {}", kModes.at(which / kCharsets.size() % kModes.size())));
        }
        return *session;
    }

private:
    test::Database database_;
    std::array<std::unique_ptr<Connection>, kCharsets.size() * kModes.size()> sessions_;
};

/// As a job type: 1 to 128 visible characters.
std::string type_of(std::string_view bytes) {
    std::string type = "t";
    for (const char c : bytes.substr(0, 127)) {
        type += static_cast<char>('!' + static_cast<unsigned char>(c) % ('~' - '!' + 1));
    }
    return type;
}

/// The headers that the bytes would be in the column, if they may be sent.
Headers headers_of(std::string_view bytes) {
    Headers headers = core::decode_headers(bytes);
    return refusal([&] { core::check_headers("enqueue", headers); }) ? Headers{} : headers;
}

/// Ends an attempt of the job as a worker's completer does.
void fail_attempt(Connection& db, JobId id, const std::string& error) {
    const core::Token owner{1};
    db.run(fmt::format("UPDATE commitq_jobs SET state='running',owner={},attempt=1 WHERE id={}",
                       store::token_literal(owner), id));
    db.run(store::end_sql(store::Tables{"commitq_"}, owner,
                          {.id = id, .attempt = 1, .ending = store::Ending::retry, .error = error}));
    require(mysql_affected_rows(db) == 1, "the error text is written");
    require(mysql_warning_count(db) == 0, "the server takes the error text without a warning");
}

void check_bytes(Connection& db, std::string_view bytes) {
    static const Queue queue{"q"};
    const std::string type = type_of(bytes);
    const Headers headers = headers_of(bytes);
    const std::string error = core::clean_error_text(bytes);

    db.run("START TRANSACTION");
    const JobId id = queue.enqueue(db, type, bytes, {.headers = headers});
    require(mysql_warning_count(db) == 0, "the server takes the job without a warning");
    fail_attempt(db, id, error);
    const auto rows =
        db.rows(fmt::format("SELECT payload,payload_size,headers,CAST(type AS BINARY),CAST(last_error AS BINARY),{}"
                            " FROM commitq_jobs_view WHERE id={}",
                            sql_bytes_literal(bytes), id));
    db.run("ROLLBACK");

    require(rows.size() == 1, "the job is there");
    const Row& row = rows.front();
    require(row.at(0) == bytes, "the payload comes back");
    require(row.at(1) == std::to_string(bytes.size()), "the payload's size comes back");
    require(row.at(2) == core::encode_headers(headers), "the headers come back");
    require(row.at(3) == type, "the type comes back");
    require(row.at(4).value_or("") == error, "the error text comes back");
    require(row.at(5) == bytes, "a literal of bytes is these bytes");
}

}  // namespace
}  // namespace commitq::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace commitq::fuzz;
    static Server server;
    if (size != 0) {
        check_bytes(server.session(data[0]), as_text(data, size).substr(1));
    }
    return 0;
}
