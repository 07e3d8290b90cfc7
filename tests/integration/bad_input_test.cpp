// Bad input gets a clear error before anything is sent, and the caller's transaction stays usable.
#include "support/database.h"
#include "support/server_facts.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace commitq::test {
namespace {

struct BadEnqueue {
    const char* name;
    const char* named;  ///< What the message must name.
    NewJob job;
    Errc code = Errc::invalid_argument;
};

std::vector<BadEnqueue> bad_enqueues() {
    using Time = std::chrono::system_clock::time_point;
    const Time tomorrow = std::chrono::system_clock::now() + 24h;
    return {
        {"EmptyType", "type", {.type = ""}},
        {"LongType", "type", {.type = std::string(129, 'x')}},
        {"BlankInType", "type", {.type = "order created"}},
        {"TrailingBlankInType", "type", {.type = "t "}},
        {"NonAsciiType", "type", {.type = "b\xC3\xA9"}},
        {"ControlCharacterInType", "type", {.type = "a\nb"}},
        {"PriorityBelow", "priority", {.type = "t", .options = {.priority = -1}}},
        {"PriorityAbove", "priority", {.type = "t", .options = {.priority = 10}}},
        {"NegativeDelay", "delay", {.type = "t", .options = {.delay = -1us}}},
        {"DelayTooLong", "delay", {.type = "t", .options = {.delay = 24h * 3651}}},
        {"DelayAndTime", "delay", {.type = "t", .options = {.delay = 1s, .at = tomorrow}}},
        {"NoAttempts", "max_attempts", {.type = "t", .options = {.max_attempts = 0}}},
        {"TooManyAttempts", "max_attempts", {.type = "t", .options = {.max_attempts = 10'001}}},
        {"BadHeaderName", "header", {.type = "t", .options = {.headers = {{"a b", "c"}}}}},
        {"BadHeaderValue", "header", {.type = "t", .options = {.headers = {{"a", "b\nc"}}}}},
        {"HeadersTooLong", "header", {.type = "t", .options = {.headers = {{"a", std::string(5'000, 'x')}}}}},
        {"PayloadAboveTheLimit", "payload", {.type = "t", .payload = std::string(1'001, 'x')}, Errc::too_large},
    };
}

class BadInput : public ::testing::Test {
protected:
    BadInput() {
        db.run("CREATE TABLE orders (id INT PRIMARY KEY)");
        db.run("START TRANSACTION");
        db.run("INSERT INTO orders VALUES (1)");
        queue.enqueue(db, "first", "{}");  // the schema has been looked at
    }

    /// Expects that @p call is refused with nothing sent, and that the transaction goes on and commits.
    template <class Call>
    void expect_refused(Call call, Errc code, std::string_view named) {
        SessionCounters sent{db, "Variable_name='Questions'"};
        const auto error = thrown(call);
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(sent.since(), (Counters{})) << "something was sent";
        EXPECT_EQ(error->code(), code);
        EXPECT_EQ(error->transaction(), TransactionState::intact);
        EXPECT_NE(std::string_view{error->what()}.find(named), std::string_view::npos) << error->what();
        queue.enqueue(db, "afterwards", "{}");
    }

    void expect_all_committed(long jobs) {
        db.run("COMMIT");
        EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM orders"), 1);
        EXPECT_EQ(database.count("pending"), jobs);
        EXPECT_EQ(database.violations(), "");
    }

    Database database;
    Connection db = database.connect();
    Queue queue{"q", {.max_payload = 1'000}};
};

TEST_F(BadInput, EnqueueNamesTheOptionSendsNothingAndTheTransactionGoesOn) {
    const auto cases = bad_enqueues();
    for (const BadEnqueue& bad : cases) {
        SCOPED_TRACE(bad.name);
        expect_refused([&] { queue.enqueue(db, bad.job.type, bad.job.payload, bad.job.options); }, bad.code, bad.named);
    }
    expect_all_committed(1 + static_cast<long>(cases.size()));
}

TEST_F(BadInput, OneBadJobOfManyRefusesAllOfThem) {
    const auto cases = bad_enqueues();
    for (const BadEnqueue& bad : cases) {
        SCOPED_TRACE(bad.name);
        const std::vector<NewJob> jobs{{.type = "t"}, bad.job, {.type = "t"}};
        expect_refused([&] { queue.enqueue_many(db, jobs); }, bad.code, bad.named);
    }
    expect_all_committed(1 + static_cast<long>(cases.size()));
}

TEST_F(BadInput, EnqueueAutocommitIsAsStrict) {
    Connection alone = database.connect();
    const auto cases = bad_enqueues();
    for (const BadEnqueue& bad : cases) {
        SCOPED_TRACE(bad.name);
        SessionCounters sent{alone, kStatements};
        const auto error =
            thrown([&] { queue.enqueue_autocommit(alone, bad.job.type, bad.job.payload, bad.job.options); });
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(error->code(), bad.code);
        EXPECT_EQ(sent.since(), (Counters{}));
    }
    expect_all_committed(1);
}

TEST_F(BadInput, MessagesHoldNothingOfThePayload) {
    const auto error = thrown([&] { queue.enqueue(db, "t", "s3cret" + std::string(1'001, 'x')); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(std::string_view{error->what()}.find("s3cret"), std::string_view::npos) << error->what();
}

TEST_F(BadInput, EnqueueOutsideATransactionIsRefusedAndAutocommitInsideOneToo) {
    expect_refused([&] { queue.enqueue_autocommit(db, "t", "{}"); }, Errc::wrong_state, "transaction");
    expect_all_committed(2);
    SessionCounters sent{db, "Variable_name='Questions'"};
    const auto error = thrown([&] { queue.enqueue(db, "t", "{}"); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::not_in_transaction);
    EXPECT_NE(std::string_view{error->what()}.find("enqueue_autocommit"), std::string_view::npos);
    const std::vector<NewJob> jobs{{.type = "t"}};
    EXPECT_EQ(thrown([&] { queue.enqueue_many(db, jobs); })->code(), Errc::not_in_transaction);
    EXPECT_EQ(sent.since(), (Counters{}));
}

TEST_F(BadInput, ANullConnectionIsRefused) {
    expect_invalid([&] { queue.enqueue(static_cast<MYSQL*>(nullptr), "t", "{}"); }, "handle", "null");
}

TEST(BadOptions, NamesAndPrefixesOfAQueue) {
    for (const std::string& name : {std::string{}, std::string(65, 'x'), std::string{"a b"}, std::string{"caf\xC3\xA9"},
                                    std::string{"a\0b", 3}}) {
        expect_invalid([&] { Queue{name}; }, "enqueue", "queue");
    }
    for (const std::string& prefix : {std::string{}, std::string{"a-b"}, std::string{"a`b"}, std::string(33, 'x')}) {
        EXPECT_EQ(thrown([&] { Queue("q", {.prefix = prefix}); })->code(), Errc::invalid_argument);
        EXPECT_EQ(thrown([&] { Schema(server_options(), prefix); })->code(), Errc::invalid_argument);
        EXPECT_EQ(thrown([&] { Reaper(server_options(), {.prefix = prefix}); })->code(), Errc::invalid_argument);
        EXPECT_EQ(thrown([&] { Worker(server_options(), {.queues = {"q"}, .prefix = prefix}); })->code(),
                  Errc::invalid_argument);
    }
    expect_invalid([&] { Queue("q", {.database = "a`b"}); }, "queue", "database");
}

TEST(BadOptions, C22_LeaseShorterThanTwoHeartbeatsAndOtherWorkerOptionsAreRefused) {
    const auto refused = [](const WorkerOptions& options) {
        const auto error = thrown([&] { Worker(server_options(), options); });
        return error && error->code() == Errc::invalid_argument;
    };
    EXPECT_TRUE(refused({}));
    EXPECT_TRUE(refused({.queues = {"a", "a"}}));
    EXPECT_TRUE(refused({.queues = {""}}));
    EXPECT_TRUE(refused({.queues = {"q"}, .prefix = "a-b"}));
    EXPECT_TRUE(refused({.queues = {"q"}, .concurrency = 0}));
    EXPECT_TRUE(refused({.queues = {"q"}, .batch = 0}));
    EXPECT_TRUE(refused({.queues = {"q"}, .prefetch = -1}));
    EXPECT_TRUE(refused({.queues = {"q"}, .lease = 999ms}));
    EXPECT_TRUE(refused({.queues = {"q"}, .lease = 10s, .heartbeat = 5'001ms}));
    EXPECT_TRUE(refused({.queues = {"q"}, .poll_min = 0ms}));
    EXPECT_TRUE(refused({.queues = {"q"}, .poll_min = 2s, .poll_max = 1s}));
    EXPECT_TRUE(refused({.queues = {"q"}, .max_attempts = 0}));
}

TEST(BadOptions, HandlersOfAWorker) {
    const Database database;
    Worker worker{database.options(), {.queues = {"q"}}};
    expect_invalid([&] { worker.start(); }, "start", "handlers");
    expect_invalid([&] { worker.on("t", nullptr); }, "on", "empty");
    expect_invalid([&] { worker.on("a b", [](JobContext&) { return Outcome::done(); }); }, "on", "type");
    expect_invalid([&] { worker.on("t", [](JobContext&) { return Outcome::done(); }, {.max_attempts = 0}); }, "on",
                   "max_attempts");
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    expect_invalid([&] { worker.on("t", [](JobContext&) { return Outcome::done(); }); }, "on", "already");
}

TEST(BadOptions, AConnectionThatNamesNoDatabase) {
    ConnectOptions options = server_options();
    options.database.clear();
    expect_invalid([&] { Worker(options, {.queues = {"q"}}); }, "worker", "database");
    expect_invalid([&] { Reaper(options, {}); }, "reaper", "database");
    expect_invalid([&] { Schema{options}; }, "schema", "database");
}

TEST(BadOptions, UnknownPartsOfAUrl) {
    for (const char* url : {"mysql://u@h/d?colour=red", "postgres://u@h/d", "mysql://u@h:99999/d",
                            "mysql://u@h/d?tls=maybe", "mysql://u@h/d?read_timeout=soon", "mysql://u@h/d#x", ""}) {
        const auto error = thrown([&] { static_cast<void>(ConnectOptions::from_url(url)); });
        ASSERT_TRUE(error.has_value()) << url;
        EXPECT_EQ(error->code(), Errc::invalid_argument) << url;
    }
}

}  // namespace
}  // namespace commitq::test
