// The shortest way through everything.
#include "support/database.h"

#include <commitq/testing.h>
#include <gtest/gtest.h>

#include <atomic>

namespace commitq::test {
namespace {

TEST(Smoke, OrderAndJobCommitTogetherAndTheJobRunsOnce) {
    Database database;
    Connection db = database.connect();
    db.run("CREATE TABLE orders (id INT PRIMARY KEY)");
    const Queue queue{"orders"};
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (1)");
    const JobId id = queue.enqueue(db, "order.created", R"({"order":1})");
    db.run("COMMIT");
    queue.notify();

    std::atomic<int> runs{0};
    Worker worker{database.options(), {.queues = {"orders"}}};
    worker.on("order.created", [&](JobContext& job) {
        EXPECT_EQ(job.id(), id);
        EXPECT_EQ(job.payload(), R"({"order":1})");
        ++runs;
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 1; }));
    const StopReport report = worker.stop(10s);
    EXPECT_TRUE(report.clean);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(database.violations(), "");
}

TEST(Smoke, ManyJobsAreEachHandledOnce) {
    Database database;
    database.enqueue_many("q", "t", 5'000);
    std::atomic<int> runs{0};
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [&](JobContext&) {
        ++runs;
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 5'000; }));
    EXPECT_TRUE(worker.stop(10s).clean);
    EXPECT_EQ(runs, 5'000);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
