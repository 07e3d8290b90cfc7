// What goes in comes out: payloads, names, headers and error texts, from enqueue to the handler and back into the row.
#include "support/database.h"
#include "support/private_server.h"
#include "unit/thrown.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

namespace commitq::test {
namespace {

/// Bytes of every value, so that a cut, a conversion or an escape shows.
std::string bytes_of(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<char>((i * 31 + i / 256 * 7) & 0xFFU);
    }
    return bytes;
}

/// Not EXPECT_EQ: nobody wants to see megabytes.
void expect_same(std::string_view found, std::string_view expected) {
    EXPECT_EQ(found.size(), expected.size());
    EXPECT_TRUE(found == expected);
}

/// Enqueues the payloads as a careless application would, in a session that isn't strict, and runs a worker on them.
void expect_byte_exact(Database& database, const std::vector<std::string>& payloads) {
    Connection db = database.connect();
    db.run("SET SESSION sql_mode = ''");
    db.run("SET NAMES latin1");
    const Queue queue{"q"};
    std::map<JobId, const std::string*> expected;
    for (const std::string& payload : payloads) {
        db.run("START TRANSACTION");
        const JobId id = queue.enqueue(db, "t", payload);
        EXPECT_EQ(db.number("SELECT @@warning_count"), 0);
        db.run("COMMIT");
        expected.emplace(id, &payload);
        expect_same(database.job(id, "payload"), payload);
        EXPECT_EQ(database.job(id, "payload_size"), std::to_string(payload.size()));
    }
    Worker worker{database.options(), {.queues = {"q"}}};
    std::set<JobId> seen;
    worker.on("t", [&](JobContext& job) {
        expect_same(job.payload(), *expected.at(job.id()));
        seen.insert(job.id());
        return Outcome::done();
    });
    testing::drain(worker);
    EXPECT_EQ(seen.size(), payloads.size());
    EXPECT_EQ(database.violations(), "");
}

TEST(PayloadBytes, C33_Over64KibWithoutStrictMode_IsNotCut) {
    Database database;
    std::vector<std::string> payloads;
    for (const std::size_t size : {0UL, 1UL, 255UL, 256UL, 1'023UL, 1'024UL, 1'025UL, 65'534UL, 65'535UL, 65'536UL,
                                   65'537UL, 1UL << 20U, (1UL << 20U) + 1, 3UL << 20U}) {
        payloads.push_back(bytes_of(size));
    }
    expect_byte_exact(database, payloads);
}

TEST(PayloadBytes, C33_SixteenMibIsStoredExactlyAndOneByteMoreIsRefused) {
    const PrivateServer server{{"--max-allowed-packet=64M"}};
    Database database{server.options()};
    expect_byte_exact(database, {bytes_of(16UL << 20U)});

    Connection db = database.connect();
    const Queue queue{"q"};
    db.run("START TRANSACTION");
    const auto error = thrown([&] { queue.enqueue(db, "t", bytes_of((16UL << 20U) + 1)); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::too_large);
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    const Queue raised{"q", {.max_payload = 20UL << 20U}};
    const JobId id = raised.enqueue(db, "t", bytes_of((16UL << 20U) + 1));
    db.run("COMMIT");
    expect_same(database.job(id, "payload"), bytes_of((16UL << 20U) + 1));
    EXPECT_EQ(database.count("pending"), 1);
}

TEST(PayloadBytes, C35_JsonStaysTheBytesThatItWas) {
    Database database;
    expect_byte_exact(database,
                      {R"({"b": 1, "a" : 2,  "a":3, "n": 1.00, "e": "\u00e9", "big": 12345678901234567890123})",
                       "{\"z\":1}\r\n", " [1 , 2]\t", "not json {", "\xEF\xBB\xBF{}", "null"});
}

TEST(PayloadBytes, TextOfAnyEncodingStaysTheBytesThatItWas) {
    Database database;
    expect_byte_exact(database,
                      {"Zoë 😀 漢字", "\xE9t\xE9", "\xD6\xD0\xCE\xC4", "\x95\x5C\x83\x5C", "\xFF\xFE\x00\x01",
                       "a'b\"c`d\\e\\", "'); DROP TABLE commitq_jobs; --", "%s%n{}{0}", std::string("\0\0\0", 3)});
}

// ------------------------------------------------------------------------------------------------ names

TEST(PayloadBytes, C36_QueueNamesThatCollateEqualStayDifferent) {
    Database database;
    const std::vector<std::string> names{"A", "a", "aa", "aA", "a_", "a-", "a%", "a'", "a\\", "a\"", "ss", "sS"};
    for (const std::string& name : names) {
        database.enqueue(name, "t", name);
    }
    for (const std::string& name : names) {
        Worker worker{database.options(), {.queues = {name}}};
        int ran = 0;
        worker.on("t", [&](JobContext& job) {
            EXPECT_EQ(job.queue(), name);
            EXPECT_EQ(job.payload(), name);
            ++ran;
            return Outcome::done();
        });
        testing::drain(worker);
        EXPECT_EQ(ran, 1) << name;
    }
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_queues"), static_cast<long>(names.size()));
}

TEST(PayloadBytes, C36_TypeNamesThatCollateEqualGoToDifferentHandlers) {
    Database database;
    database.enqueue("q", "mail", "lower");
    database.enqueue("q", "MAIL", "upper");
    database.enqueue("q", "Mail", "nobody");
    Worker worker{database.options(), {.queues = {"q"}}};
    std::vector<std::string> ran;
    for (const std::string& type : {std::string{"mail"}, std::string{"MAIL"}}) {
        worker.on(type, [&, type](JobContext& job) {
            EXPECT_EQ(job.type(), type);
            ran.emplace_back(job.payload());
            return Outcome::done();
        });
    }
    testing::drain(worker);
    EXPECT_EQ(ran, (std::vector<std::string>{"lower", "upper"}));
    EXPECT_EQ(database.look().value("SELECT payload FROM commitq_jobs WHERE state='pending'"), "nobody");
}

TEST(PayloadBytes, C36_EveryColumnThatIsComparedIsComparedByteByByte) {
    Database database;
    EXPECT_EQ(
        database.look().value("SELECT GROUP_CONCAT(CONCAT(table_name,'.',column_name,' ',collation_name))"
                              " FROM information_schema.columns WHERE table_schema=DATABASE() AND collation_name"
                              " IS NOT NULL AND collation_name NOT LIKE '%\\_bin' AND table_name NOT LIKE '%\\_view'"),
        "");
}

TEST(PayloadBytes, NamesOfTheGreatestLengthFit) {
    Database database;
    const std::string queue(64, '~');
    const std::string type(128, '!');
    const JobId id = database.enqueue(queue, type, "x");
    EXPECT_EQ(database.job(id, "queue"), queue);
    EXPECT_EQ(database.job(id, "type"), type);
    Worker worker{database.options(), {.queues = {queue}}};
    worker.on(type, [](JobContext&) { return Outcome::done(); });
    EXPECT_EQ(testing::drain(worker), 1U);
}

// ------------------------------------------------------------------------------------------------ headers

TEST(PayloadBytes, HeadersReachTheHandlerAsTheyWere) {
    Database database;
    Headers headers{{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
                    {"empty", ""},
                    {"quotes", "'\"\\`;--"},
                    {"colons", "a: b: c"},
                    {"blanks", "  both sides  "},
                    {"text", "Zoë 😀 漢字"},
                    {"A", "upper"},
                    {"a", "lower"}};
    std::size_t bytes = 0;
    for (const auto& [name, value] : headers) {
        bytes += name.size() + value.size() + 3;
    }
    headers.emplace("filler",
                    std::string(4'096 - bytes - std::string_view{"filler"}.size() - 3, 'f'));  // to the very limit
    database.enqueue("q", "t", "x", {.headers = headers});
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [&](JobContext& job) {
        EXPECT_EQ(job.headers(), headers);
        return Outcome::done();
    });
    EXPECT_EQ(testing::drain(worker), 1U);
}

// ------------------------------------------------------------------------------------------------ error texts

TEST(PayloadBytes, C38_ErrorTextThatCannotBeStored_TheTransitionSucceedsByEveryWay) {
    const std::map<std::string, std::string> texts{
        {"emoji", "smtp 😀"},
        {"invalid", "a\xFF\xFE\xC3(\xE2\x82z"},
        {"long", std::string(100'000, 'x')},
        {"long_emoji",
         [] {
             std::string text;
             for (int i = 0; i < 25'000; ++i) {
                 text += "😀";
             }
             return text;
         }()},
        {"zero", std::string("before\0after", 12)},
        {"sql", "'; DROP TABLE commitq_jobs; -- \\"},
        {"all", bytes_of(256)},
    };
    const std::vector<std::pair<std::string, std::string>> ways{
        {"throw", "pending"}, {"retry", "pending"}, {"dead", "dead"}, {"cancel", "cancelled"}};
    Database database;
    std::map<JobId, std::string> expected;
    for (const auto& [way, state] : ways) {
        for (const auto& [name, text] : texts) {
            expected.emplace(database.enqueue("q", way, name), state);
        }
    }
    Worker worker{database.options(), {.queues = {"q"}, .retry = RetryPolicy::fixed(1h)}};
    const auto text_of = [&](const JobContext& job) { return texts.at(std::string{job.payload()}); };
    worker.on("throw", [&](JobContext& job) -> Outcome { throw std::runtime_error{text_of(job)}; });
    worker.on("retry", [&](JobContext& job) { return Outcome::retry(text_of(job)); });
    worker.on("dead", [&](JobContext& job) { return Outcome::dead(text_of(job)); });
    worker.on("cancel", [&](JobContext& job) { return Outcome::cancel(text_of(job)); });
    EXPECT_EQ(testing::drain(worker), expected.size());
    for (const auto& [id, state] : expected) {
        EXPECT_EQ(database.job(id, "state"), state) << database.job(id, "type") << " " << database.job(id, "payload");
        EXPECT_LE(std::stoi(database.job(id, "COALESCE(CHAR_LENGTH(last_error),0)")), 1'000);
    }
    EXPECT_EQ(database.look().number("SELECT COUNT(DISTINCT last_error) FROM commitq_jobs WHERE last_error='smtp 😀'"),
              1);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
