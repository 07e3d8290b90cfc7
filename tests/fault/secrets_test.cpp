// Passwords and payloads stay out of messages, events and logs, whatever goes wrong.
#include "support/recorder.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>
#include <stdexcept>

namespace commitq::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPassword = "s3cr3t-Pa55word";
const std::string kPayload = "PAYL0AD-MARKER";

/// An account with all privileges on the test's database; gone at the end.
class Account {
public:
    explicit Account(Database& database) : database_{database}, name_{database.name().substr(0, 20) + "_s"} {
        database_.look().run(fmt::format("CREATE USER {}@'%' IDENTIFIED BY '{}'", name_, kPassword));
        database_.look().run(fmt::format("GRANT ALL ON {}.* TO {}@'%'", database_.name(), name_));
    }
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    ~Account() { database_.look().try_run(fmt::format("DROP USER {}@'%'", name_)); }

    void change_password(std::string_view to) {
        database_.look().run(fmt::format("ALTER USER {}@'%' IDENTIFIED BY '{}'", name_, to));
    }
    [[nodiscard]] ConnectOptions options() const {
        ConnectOptions options = database_.options();
        options.user = name_;
        options.password = kPassword;
        return options;
    }

private:
    Database& database_;
    std::string name_;
};

/// All that a logger is told.
class Log {
public:
    Log() { logger_->set_level(spdlog::level::trace); }
    [[nodiscard]] std::shared_ptr<spdlog::logger> logger() const { return logger_; }
    [[nodiscard]] std::string text() const { return text_.str(); }

private:
    std::ostringstream text_{};
    std::shared_ptr<spdlog::logger> logger_ =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_, true));
};

// ------------------------------------------------------------------------------------------------------------ passwords

TEST(Secrets, NoFailureToConnectSaysThePassword) {
    Database database;
    ConnectOptions good = database.tcp_options();
    good.password = kPassword;
    good.connect_timeout = 1s;
    const auto with = [&](auto change) {
        ConnectOptions options = good;
        change(options);
        return options;
    };
    const std::pair<ConnectOptions, Errc> cases[] = {
        {good, Errc::access_denied},
        {with([](ConnectOptions& o) { o.user = "nobody"; }), Errc::access_denied},
        {with([](ConnectOptions& o) { o.port = 1; }), Errc::connection_lost},
        {with([](ConnectOptions& o) { o.host = "no-such-host.invalid"; }), Errc::connection_lost},
        {with([](ConnectOptions& o) { o.socket = "/nowhere/at/all.sock"; }), Errc::connection_lost},
        {with([](ConnectOptions& o) { o.tls = TlsMode::verify_ca, o.tls_ca = "/nowhere/ca.pem"; }), Errc::tls_failed},
    };
    for (const auto& [options, code] : cases) {
        SCOPED_TRACE(options.describe());
        EXPECT_THAT(options.describe(), Not(HasSubstr(kPassword)));
        const auto error = thrown([&, o = options] { Schema{o}.check(); });
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(error->code(), code) << error->what();
        EXPECT_THAT(error->what(), Not(HasSubstr(kPassword)));
        EXPECT_THAT(error->parts().message, Not(HasSubstr(kPassword)));
    }
}

TEST(Secrets, AnExpiredOrLostLoginSaysNothingOfThePassword) {
    Database database;
    const Account account{database};
    mysql::Session session{account.options(), mysql::Purpose::library};
    database.look().run(fmt::format("KILL {}", mysql_thread_id(session.client())));
    const auto error = thrown([&] { session.execute("DO 1", "test"); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::connection_lost);
    EXPECT_THAT(error->what(), Not(HasSubstr(kPassword)));
}

TEST(Secrets, AWorkersLogAndEventsHoldNoPasswordFromStartToStop) {
    Database database;
    Account account{database};
    const Log log;
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{account.options(), {.queues = {"q"}, .lease = 1s, .logger = log.logger(), .observer = recorder}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.start();
    database.enqueue("q", "t");
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 1; }));

    account.change_password("an0ther-Pa55word");
    kill_connections(database);
    for (const char* loop : {"claim", "heartbeat", "reap"}) {
        EXPECT_TRUE(eventually([&] { return recorder->errors_with(loop, 1045) > 0; })) << loop;
    }
    account.change_password(kPassword);
    database.enqueue("q", "t");
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 2; })) << recorder->error_text();
    EXPECT_TRUE(worker.stop(60s).clean);

    EXPECT_THAT(log.text(), HasSubstr("1045"));
    EXPECT_THAT(log.text(), Not(HasSubstr(kPassword)));
    EXPECT_THAT(recorder->error_text(), Not(HasSubstr(kPassword)));
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_workers"), 0) << "nor is anything left of it there";
}

// ------------------------------------------------------------------------------------------------------------- payloads

/// A refusal by the server, most of them with a text that quotes the payload.
struct Refusal {
    const char* name;
    const char* statement;  ///< Of a trigger on the jobs table.
    bool quotes;            ///< Whether the server's text does.
};

constexpr Refusal kRefusals[] = {
    {"Signal", "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT=quoted", true},
    {"SignalWithANumber", "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO=30001, MESSAGE_TEXT=quoted", true},
    {"SignalWithAState", "SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO=1644, MESSAGE_TEXT=quoted", true},
    {"DuplicateKey", "INSERT INTO seen VALUES (quoted, 1, 'x')", true},
    {"NoNumber", "INSERT INTO seen VALUES ('other', quoted, 'x')", true},
    {"NoDate", "INSERT INTO seen VALUES ('other', TO_DAYS(quoted), 'x')", true},
    {"TooLong", "INSERT INTO seen VALUES ('other', 1, quoted)", false},
};

class Refused : public ::testing::TestWithParam<Refusal> {
protected:
    Refused() {
        Connection& db = database.look();
        db.run("CREATE TABLE seen (word VARCHAR(64) PRIMARY KEY, number INT, short_word VARCHAR(3))");
        db.run(fmt::format("INSERT INTO seen VALUES ('{}', 1, 'x')", kPayload));
    }
    void arm(std::string_view when) {
        database.look().run(
            fmt::format("CREATE TRIGGER refusal BEFORE {} ON commitq_jobs FOR EACH ROW BEGIN"
                        " DECLARE quoted VARCHAR(64) CHARACTER SET utf8mb4 DEFAULT CONVERT(NEW.payload USING utf8mb4);"
                        " {}; END",
                        when, GetParam().statement));
    }

    /// What the server says of an INSERT of the same payload, which is in hex there.
    static std::string answer_of_the_server(Connection& db) {
        try {
            db.run(
                "INSERT INTO commitq_jobs (queue,type,available_at,created_at,payload) VALUES ('q','t',NOW(),NOW()," +
                sql_bytes_literal(kPayload) + ")");
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return {};
    }

    Database database;
};

TEST_P(Refused, EnqueueDoesNotQuoteThePayload) {
    arm("INSERT");
    Connection db = database.connect();
    db.run("SET SESSION sql_mode='STRICT_ALL_TABLES'");
    const auto error = thrown([&] { Queue{"q"}.enqueue_autocommit(db, "t", kPayload); });
    ASSERT_TRUE(error.has_value());
    EXPECT_NE(error->server_errno(), 0U) << error->what();
    EXPECT_THAT(error->what(), Not(HasSubstr(kPayload)));
    // Asked directly, the server does; else there was nothing to leave out.
    EXPECT_THAT(answer_of_the_server(db),
                GetParam().quotes ? HasSubstr(kPayload) : ::testing::Matcher<std::string>{Not(HasSubstr(kPayload))});
}

TEST_P(Refused, AWorkersLogAndEventsDoNotQuoteThePayload) {
    database.enqueue("q", "t", kPayload);
    arm("UPDATE");
    const Log log;
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{database.options(), {.queues = {"q"}, .logger = log.logger(), .observer = recorder}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.start();
    EXPECT_TRUE(eventually([&] { return !recorder->errors("claim").empty(); }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_THAT(log.text(), HasSubstr("commitq claim: "));
    EXPECT_THAT(log.text(), Not(HasSubstr(kPayload)));
    EXPECT_THAT(recorder->error_text(), Not(HasSubstr(kPayload)));
}

INSTANTIATE_TEST_SUITE_P(Secrets, Refused, ::testing::ValuesIn(kRefusals),
                         [](const auto& tested) { return std::string{tested.param.name}; });

}  // namespace
}  // namespace commitq::test
