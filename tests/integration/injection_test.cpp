// Every string that a user can pass, by every way there is, in sessions whose settings break escapes: refused before
// anything is sent, or stored byte for byte, and never run.
#include "support/recorder.h"
#include "unit/thrown.h"

#include <commitq/testing.h>
#include <core/headers.h>
#include <core/text.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <store/registry.h>
#include <store/tables.h>

#include <algorithm>
#include <stdexcept>

namespace commitq::test {
namespace {

std::vector<std::string> hostile_strings() {
    return {
        "'; DROP TABLE commitq_jobs; -- ",
        "';DROP/**/TABLE/**/commitq_jobs;--",  // without blanks, so that it passes for a name
        "'),('q','t','pending",
        "x'); DELETE FROM commitq_jobs; -- ",
        "`;DROP/**/TABLE/**/commitq_jobs;--",
        "commitq_jobs`",
        "\\",
        "\\'",
        "\\';DROP/**/TABLE/**/commitq_jobs;--\\",
        "\";DROP/**/TABLE/**/commitq_jobs;--",
        "/*!50000;DROP/**/TABLE/**/commitq_jobs*/",
        "%s%n%p{}{0}",
        "%27%3B",
        "#",
        "--",
        std::string{"a\0';DROP/**/TABLE/**/commitq_jobs;--", 36},
        "a\n';DROP/**/TABLE/**/commitq_jobs;--",
        // The first byte of a character whose second one is the quote, or the backslash that would escape it.
        "\xBF\x27;DROP/**/TABLE/**/commitq_jobs;--",
        "\xBF\x5C\x27;DROP/**/TABLE/**/commitq_jobs;--",
        "\x81\x27;DROP/**/TABLE/**/commitq_jobs;--",
        "\x81\x60;DROP/**/TABLE/**/commitq_jobs;--",
        "\x95\x5C';DROP/**/TABLE/**/commitq_jobs;--",
        "\xE0\x27",
        std::string(100'000, '\''),
        std::string(2'000, '\\') + "'",
    };
}

struct SessionSettings {
    const char* name;
    const char* charset;
    const char* sql_mode;
};

constexpr SessionSettings kSettings[] = {
    {"Utf8", "utf8mb4", ""},
    {"Gbk", "gbk", ""},
    {"Sjis", "sjis", ""},
    {"Utf8WithoutBackslashEscapes", "utf8mb4", "NO_BACKSLASH_ESCAPES"},
    {"GbkWithoutBackslashEscapes", "gbk", "NO_BACKSLASH_ESCAPES"},
    {"AnsiQuotes", "utf8mb4", "ANSI_QUOTES"},
};

/// What an application has: a connection with settings of its own, and workers.
class Injection : public ::testing::TestWithParam<SessionSettings> {
public:
    Database database;
    Connection db = database.connect();

    /// For commitq's own connections.
    [[nodiscard]] ConnectOptions options() const {
        ConnectOptions options = database.options();
        options.charset = GetParam().charset;
        return options;
    }
    std::string column(JobId id, std::string_view name) {
        return database.look().value(fmt::format("SELECT CAST({} AS BINARY) FROM commitq_jobs WHERE id={}", name, id));
    }
    /// Enqueues a job of type `t`, runs it once, and looks what was kept as its error.
    void expect_kept_as_error(const std::string& text, const Handler& handler) {
        const JobId id = database.enqueue("reasons", "t");
        Worker worker{options(), {.queues = {"reasons"}, .retry = RetryPolicy::fixed(1h)}};
        worker.on("t", handler);
        EXPECT_EQ(worker.run_once(), 1U);
        EXPECT_EQ(column(id, "last_error"), core::clean_error_text(text));
    }

protected:
    Injection() {
        EXPECT_EQ(mysql_set_character_set(db, GetParam().charset), 0) << mysql_error(db);
        db.run(fmt::format("SET SESSION sql_mode='{}'", GetParam().sql_mode));
        Queue{"q"}.enqueue_autocommit(db, "t", "{}");  // a Queue's first call looks at the schema
        tables = all_tables();
    }
    /// Every table and view, with its columns.
    std::string all_tables() {
        database.look().run("SET SESSION group_concat_max_len=100000");
        return database.look().value(
            "SELECT GROUP_CONCAT(table_name,'.',column_name ORDER BY table_name,column_name) FROM "
            "information_schema.columns"
            " WHERE table_schema=DATABASE()");
    }

    std::string tables;
};

/// A way for a string into commitq. It throws what commitq throws, and else expects that the string is where it belongs.
struct EntryPoint {
    const char* name;
    void (*pass)(Injection& test, const std::string& text);
};

const EntryPoint kEntryPoints[] = {
    {"queue name",
     [](Injection& test, const std::string& text) {
         const testing::Enqueued enqueued{test.db};
         EXPECT_EQ(test.column(Queue{text}.enqueue_autocommit(test.db, "t", "{}"), "queue"), text);
         EXPECT_EQ(enqueued.jobs().at(0).queue, text);
     }},
    {"type",
     [](Injection& test, const std::string& text) {
         const testing::Enqueued enqueued{test.db};
         EXPECT_EQ(test.column(Queue{"q"}.enqueue_autocommit(test.db, text, "{}"), "type"), text);
         EXPECT_EQ(enqueued.jobs().at(0).type, text);
     }},
    {"payload",
     [](Injection& test, const std::string& text) {
         const JobId id = Queue{"q"}.enqueue_autocommit(test.db, "t", text);
         EXPECT_TRUE(test.database.job(id, "payload") == text);
     }},
    {"one of many",
     [](Injection& test, const std::string& text) {
         const std::vector<NewJob> jobs{{.type = "t", .payload = text, .options = {.headers = {{"h", "v"}}}},
                                        {.type = "t", .payload = text + text}};
         test.db.run("START TRANSACTION");
         const auto ids = Queue{"q"}.enqueue_many(test.db, jobs);
         test.db.run("COMMIT");
         EXPECT_TRUE(test.database.job(ids.at(0), "payload") == text);
         EXPECT_TRUE(test.database.job(ids.at(1), "payload") == text + text);
     }},
    {"header name",
     [](Injection& test, const std::string& text) {
         const Headers headers{{text, "v"}};
         const JobId id = Queue{"q"}.enqueue_autocommit(test.db, "t", "{}", {.headers = headers});
         EXPECT_EQ(test.column(id, "headers"), core::encode_headers(headers));
     }},
    {"header value",
     [](Injection& test, const std::string& text) {
         const Headers headers{{"h", text}};
         const JobId id = Queue{"q"}.enqueue_autocommit(test.db, "t", "{}", {.headers = headers});
         EXPECT_EQ(test.column(id, "headers"), core::encode_headers(headers));
     }},
    {"prefix of a queue", [](Injection&, const std::string& text) { Queue("q", {.prefix = text}); }},
    {"prefix of a worker",
     [](Injection& test, const std::string& text) { Worker(test.options(), {.queues = {"q"}, .prefix = text}); }},
    {"prefix of a reaper", [](Injection& test, const std::string& text) { Reaper(test.options(), {.prefix = text}); }},
    {"prefix of a schema", [](Injection& test, const std::string& text) { Schema(test.options(), text); }},
    {"prefix in the testing kit", [](Injection& test, const std::string& text) { testing::Enqueued(test.db, text); }},
    {"database of a queue", [](Injection&, const std::string& text) { Queue("q", {.database = text}); }},
    {"database of a worker",
     [](Injection& test, const std::string& text) {
         ConnectOptions options = test.options();
         options.database = text;
         Worker(options, {.queues = {"q"}});
     }},
    {"character set",
     [](Injection& test, const std::string& text) {
         ConnectOptions options = test.options();
         options.charset = text;
         Worker(options, {.queues = {"q"}});
     }},
    {"queue of a worker and a reaper",
     [](Injection& test, const std::string& text) {
         Worker worker{test.options(), {.queues = {text}}};
         worker.on("t", [&](JobContext& job) {
             EXPECT_EQ(job.queue(), text);
             return Outcome::done();
         });
         const JobId done = test.database.enqueue(text, "t");
         testing::drain(worker);
         EXPECT_EQ(test.column(done, "state"), "completed");
         const JobId expired = test.database.enqueue(text, "t");
         test.database.look().run(
             fmt::format("UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=9,"
                         "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE id={}",
                         expired));
         EXPECT_EQ(Reaper(test.options(), {}).reap_once().returned, 1U);
         EXPECT_EQ(testing::drain(worker), 1U);
     }},
    {"type of a handler",
     [](Injection& test, const std::string& text) {
         Worker worker{test.options(), {.queues = {"types"}}};
         worker.on(text, [&](JobContext& job) {
             EXPECT_EQ(job.type(), text);
             return Outcome::done();
         });
         test.database.enqueue("types", text);
         EXPECT_EQ(testing::drain(worker), 1U);
     }},
    {"what() of a handler's exception",
     [](Injection& test, const std::string& text) {
         const std::runtime_error error{text};
         test.expect_kept_as_error(error.what(), [&](JobContext&) -> Outcome { throw std::runtime_error{error}; });
     }},
    {"reason of a retry",
     [](Injection& test, const std::string& text) {
         test.expect_kept_as_error(text, [&](JobContext&) { return Outcome::retry(text); });
     }},
    {"reason of a dead letter",
     [](Injection& test, const std::string& text) {
         test.expect_kept_as_error(text, [&](JobContext&) { return Outcome::dead(text); });
     }},
    {"reason of a cancellation",
     [](Injection& test, const std::string& text) {
         test.expect_kept_as_error(text, [&](JobContext&) { return Outcome::cancel(text); });
     }},
    {"filter of the testing kit, queue",
     [](Injection& test, const std::string& text) {
         EXPECT_TRUE(testing::Enqueued{test.db}.jobs({.queue = text}).empty());
     }},
    {"filter of the testing kit, type",
     [](Injection& test, const std::string& text) {
         EXPECT_TRUE(testing::Enqueued{test.db}.jobs({.type = text}).empty());
     }},
    {"host of a worker",  // of which other bytes are replaced before
     [](Injection& test, const std::string& text) {
         store::WorkerRow worker{.host = text.substr(0, 64)};
         std::replace_if(
             worker.host.begin(), worker.host.end(), [](char c) { return c <= ' ' || c > '~'; }, '?');
         mysql::Session session{test.options(), mysql::Purpose::library};
         session.execute(store::upsert_worker_sql(store::Tables{"commitq_"}, worker), "test");
         EXPECT_EQ(test.database.look().value("SELECT host FROM commitq_workers"), worker.host);
         session.execute(store::delete_worker_sql(store::Tables{"commitq_"}, worker.token), "test");
     }},
    {"text in a handler's own SQL",
     [](Injection& test, const std::string& text) {
         const std::string found = test.db.value("SELECT " + sql_bytes_literal(text));
         EXPECT_TRUE(found == text);
     }},
};

/// How a string may be shown in the output of a failed test.
std::string shown(const std::string& text) { return core::hex(text.substr(0, 40)); }

TEST_P(Injection, EachStringByEachWayIsRefusedOrKeptAsItIsAndNeverRun) {
    for (const EntryPoint& entry : kEntryPoints) {
        for (const std::string& text : hostile_strings()) {
            SCOPED_TRACE(fmt::format("{}, {} bytes: {}", entry.name, text.size(), shown(text)));
            try {
                entry.pass(*this, text);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
                EXPECT_EQ(error.transaction(), TransactionState::intact) << error.what();
                EXPECT_EQ(error.server_errno(), 0U) << "the server was not asked";
            }
        }
    }
    EXPECT_EQ(all_tables(), tables);
    EXPECT_EQ(database.violations(), "");
}

// Accounts and schemas are no part of any statement: the server is asked, and refuses.
TEST_P(Injection, AnAccountOrADatabaseToConnectWithIsNoStatement) {
    for (const std::string& text : hostile_strings()) {
        SCOPED_TRACE(shown(text));
        ConnectOptions as_user = options();
        as_user.user = text;
        EXPECT_TRUE(code_of([&] { Schema{as_user}.check(); }).has_value());
        ConnectOptions with_password = options();
        with_password.password = text;
        EXPECT_TRUE(code_of([&] { Schema{with_password}.check(); }).has_value());
        ConnectOptions into = options();
        into.database = text;
        EXPECT_TRUE(code_of([&] { Schema{into}.migrate(); }).has_value());
    }
    EXPECT_EQ(all_tables(), tables);
}

INSTANTIATE_TEST_SUITE_P(Sessions, Injection, ::testing::ValuesIn(kSettings),
                         [](const auto& tested) { return std::string{tested.param.name}; });

// ------------------------------------------------------------------------------------- rows that were put in by hand

TEST(RowsByHand, OfAQueueWithAHostileName_AreReapedAndHarmNothing) {
    Database database;
    const std::string name = "'; DROP TABLE commitq_jobs; -- `\\\"\n%s";
    const std::string literal = sql_bytes_literal(name);
    Connection& look = database.look();
    look.run(fmt::format("INSERT INTO commitq_queues (queue,created_at) VALUES ({},NOW())", literal));
    const JobId id = database.enqueue("q", "t");
    look.run(
        fmt::format("UPDATE commitq_jobs SET queue={},state='running',owner=REPEAT('x',16),attempt=1,"
                    "max_attempts=9,started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE id={}",
                    literal, id));
    EXPECT_EQ(Reaper(database.options(), {}).reap_once().returned, 1U);
    EXPECT_EQ(database.job(id, "state"), "pending");
    EXPECT_EQ(database.violations(), "");
}

TEST(RowsByHand, WithHostileTypesPayloadsAndHeaders_ReachTheHandlerOrStayAndStopNoOther) {
    Database database;
    std::vector<JobId> ids;
    for (const std::string& text : hostile_strings()) {
        const std::string cut = text.substr(0, 1'000);
        const JobId id = ids.emplace_back(database.enqueue("q", "t"));
        database.look().run(fmt::format("UPDATE commitq_jobs SET payload={0},payload_size={1},headers={0} WHERE id={2}",
                                        sql_bytes_literal(cut), cut.size(), id));
    }
    const std::vector<std::string> unknown_types{"'; DROP TABLE commitq_jobs; -- \n", "t ", "T", ""};
    for (const std::string& type : unknown_types) {
        database.look().run(fmt::format("UPDATE commitq_jobs SET type={} WHERE id={}", sql_bytes_literal(type),
                                        database.enqueue("q", "t")));
    }
    const auto texts = hostile_strings();
    std::size_t ran = 0;
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [&](JobContext& job) {
        EXPECT_EQ(job.id(), ids.at(ran));
        EXPECT_EQ(job.payload(), texts.at(ran).substr(0, 1'000));
        EXPECT_TRUE(job.headers().empty());
        ++ran;
        return Outcome::done();
    });
    EXPECT_EQ(testing::drain(worker), texts.size());
    EXPECT_EQ(database.count("pending"), static_cast<long>(unknown_types.size())) << "they are left alone";
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
