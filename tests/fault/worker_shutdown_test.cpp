// Stopping while the server does not answer.
#include "support/private_server.h"
#include "support/recorder.h"

#include <gtest/gtest.h>

#include <atomic>

namespace commitq::test {
namespace {

/// Far above what any stop should take, for slow machines; what doesn't come back within it hangs.
constexpr auto kHang = 30s;

class FrozenServer : public ::testing::Test {
protected:
    StopReport timed_stop(Worker& worker, std::chrono::milliseconds deadline) {
        const auto began = std::chrono::steady_clock::now();
        const StopReport report = worker.stop(deadline);
        EXPECT_LT(std::chrono::steady_clock::now() - began, deadline + kHang);
        return report;
    }

    PrivateServer server;
    Database database{server.options()};
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
};

TEST_F(FrozenServer, StopOfAnIdleWorkerReturns) {
    ConnectOptions patient = database.options();
    patient.read_timeout = 1h;  // no timeout of the client's helps
    for (const auto deadline : {0ms, 1000ms}) {
        Worker worker{patient, {.queues = {"q"}, .heartbeat = 100ms, .observer = recorder}};
        worker.on("t", [](JobContext&) { return Outcome::done(); });
        worker.start();
        const JobId id = database.enqueue("q", "t");
        EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
        server.freeze();
        timed_stop(worker, deadline);
        server.thaw();
    }
    EXPECT_EQ(database.violations(), "");
}

TEST_F(FrozenServer, StopLeavesAResultThatCannotBeWrittenToTheLease) {
    ConnectOptions patient = database.options();
    patient.read_timeout = 1h;
    const JobId id = database.enqueue("q", "t");
    Gate started;
    Gate go_on;
    {
        Worker worker{patient, {.queues = {"q"}, .observer = recorder}};
        worker.on("t", [&](JobContext&) {
            started.open();
            go_on.wait();
            return Outcome::done();
        });
        worker.start();
        ASSERT_TRUE(started.wait());
        server.freeze();
        go_on.open();
        const StopReport report = timed_stop(worker, 1s);
        EXPECT_EQ(report.abandoned, 1U);
        EXPECT_EQ(report.completed, 0U);
        EXPECT_FALSE(report.clean);
    }
    server.thaw();
    // The completion was sent, and may have been done by now. If it wasn't, the job comes back.
    EXPECT_TRUE(eventually([&] { return connections(database).empty(); }));
    if (database.job(id, "state") == "running") {
        expire_leases(database);
        EXPECT_EQ((Reaper{database.options(), {}}.reap_once().returned), 1U);
    }
    EXPECT_EQ(database.violations(), "");
}

TEST_F(FrozenServer, AReaperAloneStopsToo) {
    ConnectOptions patient = database.options();
    patient.read_timeout = 1h;
    Reaper reaper{patient, {.interval = 100ms, .observer = recorder}};
    reaper.start();
    server.freeze();
    const auto began = std::chrono::steady_clock::now();
    reaper.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - began, kHang);
    server.thaw();
}

TEST_F(FrozenServer, WorkersGoOnWhenItAnswersAgain) {
    ConnectOptions impatient = database.options();
    impatient.read_timeout = 1s;
    impatient.connect_timeout = 1s;
    Runs runs;
    Worker worker{impatient, {.queues = {"q"}, .lease = 20s, .heartbeat = 100ms, .observer = recorder}};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        return Outcome::done();
    });
    worker.start();
    for (long round = 1; round <= 2; ++round) {
        server.freeze();
        EXPECT_TRUE(
            eventually([&] { return recorder->errors("heartbeat").size() >= static_cast<std::size_t>(round); }));
        server.thaw();
        database.enqueue("q", "t");
        EXPECT_TRUE(eventually([&] { return database.count("completed") == round; }));
    }
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
