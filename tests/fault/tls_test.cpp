// What each TLS mode gives on servers with a good certificate, with another name's, and without TLS. Each test has a server
// of its own.
#include "support/certificates.h"
#include "support/private_server.h"
#include "support/recorder.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mysql/session.h>

#include <array>
#include <atomic>

namespace commitq::test {
namespace {

constexpr std::string_view kGoodNames = "IP:127.0.0.1,DNS:localhost";
constexpr std::array kModes{TlsMode::off, TlsMode::preferred, TlsMode::required, TlsMode::verify_ca,
                            TlsMode::verify_identity};
constexpr std::array kVerifying{TlsMode::verify_ca, TlsMode::verify_identity};

std::vector<std::string> options_without_tls() {
    // MySQL has no switch for it any more, and makes certificates by itself.
    return {private_servers_are_mariadb() ? "--skip-ssl" : "--tls-version="};
}

/// @param authority for the modes that verify.
ConnectOptions by_tcp(const PrivateServer& server, TlsMode mode, const std::string& authority = {}) {
    ConnectOptions options = server.options();
    options.socket.clear();
    options.tls = mode;
    options.tls_ca = mode >= TlsMode::verify_ca ? authority : "";
    return options;
}

/// What the server says that the connection is encrypted with; empty for nothing.
std::string cipher(const ConnectOptions& options) {
    mysql::Session session{options, mysql::Purpose::library};
    mysql::Reply reply = session.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'", "test");
    reply.rows.next();
    return std::string{reply.rows.text(1)};
}

/// Expects that connecting fails for good, with a message that says what was asked for, and why it is not to be had.
void expect_tls_failed(const ConnectOptions& options, std::string_view reason) {
    SCOPED_TRACE(options.describe());
    const auto error = thrown([&] { mysql::Session(options, mysql::Purpose::library); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::tls_failed) << error->what();
    EXPECT_EQ(error->repeat(), Repeat::never) << error->what();
    EXPECT_EQ(error->transaction(), TransactionState::none);
    EXPECT_THAT(error->what(), ::testing::HasSubstr(fmt::format("tls={}: ", to_string(options.tls))));
    EXPECT_THAT(error->what(), ::testing::ContainsRegex(std::string{reason}));
    EXPECT_THAT(error->what(), ::testing::Not(::testing::HasSubstr(options.password)));
}

/// How the client libraries say that a certificate doesn't hold.
constexpr std::string_view kBadCertificate = "[Cc]ertificate|Hostname";

TEST(Tls, EveryModeButOffEncryptsWhereTheServerCan) {
    const CertificateAuthority authority;
    const PrivateServer server{authority.server_options(std::string{kGoodNames})};
    for (const TlsMode mode : kModes) {
        EXPECT_EQ(cipher(by_tcp(server, mode, authority.file())).empty(), mode == TlsMode::off) << to_string(mode);
    }
    const CertificateAuthority stranger;
    for (const TlsMode mode : kVerifying) {
        expect_tls_failed(by_tcp(server, mode, stranger.file()), kBadCertificate);
    }
}

TEST(Tls, AUnixSocketIsNeverTakenForEncrypted) {
    const CertificateAuthority authority;
    const PrivateServer server{authority.server_options(std::string{kGoodNames})};
    ConnectOptions options = server.options();
    ASSERT_FALSE(options.socket.empty());
    for (const TlsMode mode : {TlsMode::off, TlsMode::preferred}) {
        options.tls = mode;
        EXPECT_EQ(cipher(options), "") << to_string(mode);
    }
    options.tls = TlsMode::required;
    try {
        EXPECT_NE(cipher(options), "");
    } catch (const Error& error) {  // the client library has no TLS there
        EXPECT_EQ(error.code(), Errc::tls_failed) << error.what();
    }
}

TEST(Tls, AnotherServersCertificateIsRefusedWhereItsNameIsChecked) {
    const CertificateAuthority authority;
    const PrivateServer server{authority.server_options("DNS:elsewhere.example")};
    EXPECT_NE(cipher(by_tcp(server, TlsMode::required)), "");
    expect_tls_failed(by_tcp(server, TlsMode::verify_identity, authority.file()), kBadCertificate);
    const ConnectOptions verify_ca = by_tcp(server, TlsMode::verify_ca, authority.file());
    if (client_library() == ClientLibrary::mariadb_connector_c) {
        expect_tls_failed(verify_ca, kBadCertificate);  // it checks both or none
    } else {
        EXPECT_NE(cipher(verify_ca), "");
    }
}

TEST(Tls, AServerWithoutItIsRefusedWhereItIsAMust) {
    const CertificateAuthority authority;
    const PrivateServer server{options_without_tls()};
    EXPECT_EQ(cipher(by_tcp(server, TlsMode::off)), "");
    EXPECT_EQ(cipher(by_tcp(server, TlsMode::preferred)), "");
    for (const TlsMode mode : {TlsMode::required, TlsMode::verify_ca, TlsMode::verify_identity}) {
        expect_tls_failed(by_tcp(server, mode, authority.file()), "SSL|TLS");
    }
}

TEST(Tls, AServerThatInsistsOnItRefusesOff) {
    const CertificateAuthority authority;
    auto server_options = authority.server_options(std::string{kGoodNames});
    server_options.emplace_back("--require-secure-transport=ON");
    const PrivateServer server{server_options};
    if (private_servers_are_mariadb()) {  // it says no more
        EXPECT_EQ(code_of([&] { cipher(by_tcp(server, TlsMode::off)); }), Errc::access_denied);
    } else {
        expect_tls_failed(by_tcp(server, TlsMode::off), "insecure|secure transport");
    }
    EXPECT_NE(cipher(by_tcp(server, TlsMode::preferred)), "");
}

TEST(Tls, AnAuthorityFileThatIsNoneIsSaidToBe) {
    const TemporaryFolder folder;
    ConnectOptions options = server_options();
    options.socket.clear();
    for (const TlsMode mode : kVerifying) {
        options.tls = mode;
        options.tls_ca = folder.path("missing.pem");
        expect_tls_failed(options, "missing.pem, can't be read: No such file");
        options.tls_ca = folder.write("empty.pem", "");
        expect_tls_failed(options, "SSL|TLS");
        options.tls_ca = folder.write("text.pem", "no certificate");
        expect_tls_failed(options, "SSL|TLS");
    }
}

TEST(Tls, AWorkerDoesNotStartOnAServerThatItCannotVerify) {
    const CertificateAuthority authority;
    const CertificateAuthority stranger;
    const PrivateServer server{authority.server_options(std::string{kGoodNames})};
    Database database{server.options()};
    ConnectOptions options = by_tcp(server, TlsMode::verify_identity, stranger.file());
    options.database = database.name();
    Worker worker{options, {.queues = {"q"}}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    EXPECT_EQ(code_of([&] { worker.start(); }), Errc::tls_failed);
    EXPECT_EQ(code_of([&] { Schema{options}.check(); }), Errc::tls_failed);
    EXPECT_EQ(code_of([&] { Reaper(options, {}).reap_once(); }), Errc::tls_failed);
}

// Writing to a broken connection raises SIGPIPE where TLS does it, and ends a process that doesn't expect it.
TEST(Tls, ConnectionsThatBreakUnderIt_AreReplacedAndNoJobIsLost) {
    const CertificateAuthority authority;
    const PrivateServer server{authority.server_options(std::string{kGoodNames})};
    Database database{server.options()};
    ConnectOptions options = by_tcp(server, TlsMode::verify_identity, authority.file());
    options.database = database.name();
    const auto recorder = std::make_shared<Recorder>();
    std::atomic<int> unencrypted{0};
    Worker worker{options, {.queues = {"q"}, .concurrency = 2, .observer = recorder}};
    worker.on("t", [&](JobContext& job) {
        auto tx = job.begin();
        unencrypted += tx.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").at(0).at(1).value_or("").empty() ? 1 : 0;
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    worker.start();
    for (long round = 1; round <= 10; ++round) {
        database.enqueue_many("q", "t", 5);
        EXPECT_TRUE(eventually([&] { return database.count("completed") == 5 * round; })) << recorder->error_text();
        EXPECT_GT(kill_connections(database), 0);
    }
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(unencrypted, 0);
    for (const Error& error : recorder->errors()) {
        EXPECT_NE(error.code(), Errc::tls_failed) << error.what() << ": a broken connection is not a bad certificate";
    }
    EXPECT_EQ(database.violations(), "");
}

TEST(LocalFiles, AreNotSentToAServerThatAsksForThem) {
    const PrivateServer server{{"--local-infile=ON"}};
    Database database{server.options()};
    database.look().run("CREATE TABLE lines_of_a_file (line TEXT)");
    for (const auto purpose : {mysql::Purpose::library, mysql::Purpose::handler}) {
        mysql::Session session{database.options(), purpose};
        EXPECT_TRUE(code_of([&] {
                        session.execute("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE lines_of_a_file", "test");
                    }).has_value());
        EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM lines_of_a_file"), 0);
    }
}

}  // namespace
}  // namespace commitq::test
