// What a worker tells its host: the observer's hooks, and the log.
#include "support/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <atomic>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace commitq::test {
namespace {

TEST(WorkerObserver, EachEventComesOnceWithItsData) {
    Database database;
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{database.options(), {.queues = {"orders", "mails"}, .observer = recorder}};
    worker.on("order.created", [](JobContext&) {
        std::this_thread::sleep_for(1ms);
        return Outcome::done();
    });
    worker.on("mail.send", [](JobContext& job) {
        std::this_thread::sleep_for(1ms);
        return job.attempt() < 3 ? Outcome::retry("smtp 451", 0s) : Outcome::dead("no such user");
    });
    const JobId order = database.enqueue("orders", "order.created");
    const JobId mail = database.enqueue("mails", "mail.send");
    // Due for an hour by now.
    database.look().run("UPDATE commitq_jobs SET available_at=available_at - INTERVAL 1 HOUR WHERE queue='orders'");
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 1 && database.count("dead") == 1; }));
    EXPECT_TRUE(worker.stop(60s).clean);

    EXPECT_EQ(recorder->story(order), "claimed started completed");
    for (const Event& event : recorder->events()) {
        EXPECT_EQ(event.queue, event.id == order ? "orders" : "mails") << event.name;
        EXPECT_EQ(event.type, event.id == order ? "order.created" : "mail.send") << event.name;
        if (event.id == order) {
            EXPECT_EQ(event.attempt, 1);
            EXPECT_EQ(event.reason, "");
            EXPECT_GE(event.wait, 1h);
            EXPECT_LT(event.wait, 2h);
            EXPECT_EQ(event.delay, 0s);
        }
        const bool handler_has_run = event.name != "claimed" && event.name != "started";
        EXPECT_EQ(event.run >= 1ms, handler_has_run) << event.name;
    }
    EXPECT_EQ(recorder->count("claimed", mail), 3U);
    EXPECT_EQ(recorder->count("started", mail), 3U);
    std::vector<int> attempts;
    for (const Event& event : recorder->events("retried")) {
        EXPECT_EQ(event.id, mail);
        EXPECT_EQ(event.reason, "smtp 451");
        attempts.push_back(event.attempt);
    }
    EXPECT_EQ(attempts, (std::vector<int>{1, 2}));
    const auto dead = recorder->events("dead");
    ASSERT_EQ(dead.size(), 1U);
    EXPECT_EQ(dead[0].attempt, 3);
    EXPECT_EQ(dead[0].reason, "no such user");
    EXPECT_EQ(recorder->error_text(), "");
    EXPECT_EQ(recorder->events().size(), 3U + 9U);
    EXPECT_EQ(database.violations(), "");
}

TEST(WorkerObserver, EveryJobOfABacklogHasEachEventOnce) {
    Database database;
    const auto ids = database.enqueue_many("q", "t", 1'000);
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{database.options(), {.queues = {"q"}, .observer = recorder}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 1'000; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    for (const JobId id : ids) {
        EXPECT_EQ(recorder->story(id), "claimed started completed");
    }
    EXPECT_EQ(recorder->error_text(), "");
}

TEST(WorkerObserver, TheReaperInAWorkerTellsWhatItReaped) {
    Database database;
    const auto ids = database.enqueue_many("q", "t", 3);
    database.look().run("UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=IF(id=" +
                        std::to_string(ids[0]) + ",1,5),started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6)");
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{database.options(), {.queues = {"q"}, .lease = 1s, .observer = recorder}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 2; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(recorder->returned(), 2U);
    EXPECT_EQ(recorder->dead(), 1U);
    EXPECT_EQ(database.job(ids[0], "state"), "dead");
    EXPECT_EQ(database.violations(), "");
}

// ---------------------------------------------------------------------------------------------------------------- log

/// A handler for each outcome; all of them let out the secret as best they can.
void register_chatterers(Worker& worker, const std::string& secret) {
    worker.on("done", [](JobContext&) { return Outcome::done(); });
    worker.on("retry", [=](JobContext&) { return Outcome::retry("reason with " + secret, 1h); });
    worker.on("throw", [=](JobContext&) -> Outcome { throw std::runtime_error{"what with " + secret}; });
    worker.on("snooze", [](JobContext&) { return Outcome::snooze(1h); });
    worker.on("dead", [=](JobContext&) { return Outcome::dead("reason with " + secret); });
    worker.on("cancel", [=](JobContext&) { return Outcome::cancel("reason with " + secret); });
}

constexpr std::array kTypes = {"done", "retry", "throw", "snooze", "dead", "cancel"};

TEST(WorkerLog, HoldsNoPayloadAndNoSecret) {
    Database database;
    Faults faults{database};
    const std::string secret = "PAYLOAD-MARKER";
    std::ostringstream text;
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text, true);
    const auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_level(spdlog::level::trace);
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{database.options(), {.queues = {"q"}, .lease = 1s, .logger = logger, .observer = recorder}};
    register_chatterers(worker, secret);

    // A duplicate key, whose message quotes values, and other errors on the way.
    faults.arm("pending", "running", 1062);
    for (const char* type : kTypes) {
        database.enqueue("q", type, secret, {.headers = {{"traceparent", secret}}});
    }
    database.enqueue("q", "done", secret + std::string(5'000, 'x'));
    worker.start();
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("claim", 1062) > 0; }));
    faults.disarm();
    faults.arm("running", "completed", 1366);
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("complete", 1366) > 0; }));
    faults.disarm();
    kill_connections(database);
    EXPECT_TRUE(eventually([&] { return database.count("pending") == 3 && database.count("running") == 0; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    logger->flush();

    const std::string log = text.str();
    EXPECT_NE(log.find("claimed job"), std::string::npos) << log;
    EXPECT_NE(log.find("completed"), std::string::npos) << log;
    EXPECT_NE(log.find("commitq claim: "), std::string::npos) << log;
    EXPECT_EQ(log.find(secret), std::string::npos) << log;
    EXPECT_EQ(log.find(database.options().password), std::string::npos);
    EXPECT_EQ(recorder->error_text().find(secret), std::string::npos) << recorder->error_text();
    EXPECT_EQ(recorder->error_text().find(database.options().password), std::string::npos);
    EXPECT_EQ(database.violations(), "");
}

TEST(WorkerLog, IsSilentByDefault) {
    Database database;
    Faults faults{database};
    faults.arm("pending", "running", 1213);
    const auto recorder = std::make_shared<Recorder>();
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    {
        Worker worker{database.options(), {.queues = {"q"}, .observer = recorder}};
        register_chatterers(worker, "secret");
        for (const char* type : kTypes) {
            database.enqueue("q", type);
        }
        worker.start();
        eventually([&] { return recorder->errors_with("claim", 1213) > 0; });
        faults.disarm();
        eventually([&] { return database.count("pending") == 3 && database.count("completed") == 1; });
        worker.stop(60s);
    }
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(database.count("completed"), 1);
}

class ThrowingSink : public spdlog::sinks::base_sink<std::mutex> {
public:
    std::atomic<int> messages{0};

protected:
    void sink_it_(const spdlog::details::log_msg&) override {
        ++messages;
        throw std::runtime_error{"the disk is full"};
    }
    void flush_() override {}
};

TEST(WorkerLog, ALoggerThatThrowsStopsNothing) {
    Database database;
    const auto sink = std::make_shared<ThrowingSink>();
    const auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_level(spdlog::level::trace);
    logger->set_error_handler([](const std::string&) { throw std::runtime_error{"the error handler, too"}; });
    database.enqueue_many("q", "t", 50);
    Worker worker{database.options(), {.queues = {"q"}, .logger = logger}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 50; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_GT(sink->messages, 0);
}

}  // namespace
}  // namespace commitq::test
