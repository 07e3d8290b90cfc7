// commitq/testing.h, and running a worker without threads.
#include "support/database.h"
#include "unit/thrown.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <thread>

namespace commitq::test {
namespace {

TEST(TestingKit, EnqueuedListsWhatThisTransactionAddedBeforeItCommits) {
    Database database;
    database.enqueue("q", "old");
    Connection db = database.connect();
    const testing::Enqueued enqueued{db};
    const Queue queue{"orders"};
    db.run("START TRANSACTION");
    queue.enqueue(db, "order.created", "small", {.priority = 2, .delay = 5s, .headers = {{"trace", "1"}}});
    queue.enqueue(db, "order.paid", std::string(3'000, 'x'));

    const auto jobs = enqueued.jobs({.type = "order.created"});
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].queue, "orders");
    EXPECT_EQ(jobs[0].state, "pending");
    EXPECT_EQ(jobs[0].payload, "small");
    EXPECT_EQ(jobs[0].priority, 2);
    EXPECT_EQ(jobs[0].delay, 5s);
    EXPECT_EQ(jobs[0].headers, (Headers{{"trace", "1"}}));
    EXPECT_EQ(enqueued.jobs({.type = "order.paid"}).at(0).payload, std::string(3'000, 'x'));
    EXPECT_NO_THROW(enqueued.expect(2));
    EXPECT_NO_THROW(enqueued.expect(0, {.queue = "other"}));
    const auto error = thrown([&] { enqueued.expect(1); });
    ASSERT_TRUE(error.has_value());
    EXPECT_NE(std::string_view{error->what()}.find("order.paid"), std::string_view::npos) << "it says what there is";
    db.run("ROLLBACK");
    EXPECT_NO_THROW(enqueued.expect(0));
}

TEST(TestingKit, PerformRunsAHandlerWithoutADatabase) {
    ConnectOptions nowhere;
    nowhere.database = "nowhere";
    nowhere.port = 1;
    Worker worker{nowhere, {.queues = {"q"}}};
    worker.on("echo", [](JobContext& job) {
        EXPECT_EQ(job.attempt(), 1);
        EXPECT_EQ(job.headers().at("trace"), "7");
        return Outcome::dead(std::string{job.payload()});
    });
    worker.on("throws", [](JobContext&) -> Outcome { throw std::runtime_error{"no"}; });
    worker.on("begins", [](JobContext& job) {
        EXPECT_EQ(thrown([&] { static_cast<void>(job.begin()); })->code(), Errc::wrong_state);
        return Outcome::done();
    });
    const Outcome echoed = testing::perform(worker, "echo", "hello", {.headers = {{"trace", "7"}}});
    EXPECT_EQ(echoed.kind(), Outcome::Kind::dead);
    EXPECT_EQ(echoed.reason(), "hello");
    EXPECT_EQ(testing::perform(worker, "throws", "").kind(), Outcome::Kind::retry);
    EXPECT_EQ(testing::perform(worker, "begins", "").kind(), Outcome::Kind::done);
    EXPECT_EQ(thrown([&] { testing::perform(worker, "unknown", ""); })->code(), Errc::invalid_argument);
}

TEST(TestingKit, RunOnceRunsOneBatchOnThisThreadAndDrainAllThatIsDue) {
    Database database;
    database.enqueue_many("q", "t", 25);
    database.enqueue("q", "t", "{}", {.delay = 1h});
    Worker worker{database.options(), {.queues = {"q"}, .batch = 10}};
    const auto here = std::this_thread::get_id();
    worker.on("t", [&](JobContext&) {
        EXPECT_TRUE(std::this_thread::get_id() == here);
        return Outcome::done();
    });
    EXPECT_EQ(worker.run_once(), 10U);
    EXPECT_EQ(database.count("completed"), 10);
    EXPECT_EQ(testing::drain(worker), 15U);
    EXPECT_EQ(worker.run_once(), 0U);
    EXPECT_EQ(database.count("pending"), 1);
    EXPECT_EQ(database.violations(), "");
}

TEST(TestingKit, C29_RetryPassByPages_EachDueJobGetsExactlyOneAttemptAPass) {
    Database database;
    database.enqueue_many("q", "t", 250);
    std::map<JobId, int> attempts;
    Worker worker{database.options(), {.queues = {"q"}, .retry = RetryPolicy::fixed(1h)}};
    worker.on("t", [&](JobContext& job) {
        ++attempts[job.id()];
        return Outcome::retry("not yet");
    });
    for (int pass = 1; pass <= 2; ++pass) {
        EXPECT_EQ(testing::drain(worker), 250U);
        EXPECT_EQ(attempts.size(), 250U);
        for (const auto& [id, count] : attempts) {
            EXPECT_EQ(count, pass) << "job " << id;
        }
        EXPECT_EQ(database.look().number(fmt::format("SELECT COUNT(*) FROM commitq_jobs WHERE attempt={}", pass)), 250);
        database.look().run("UPDATE commitq_jobs SET available_at=UTC_TIMESTAMP(6)");  // the next hour has come
    }
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
