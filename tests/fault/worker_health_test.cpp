// What a worker says of itself while all is well, when the server stands still, and after stop.
#include "support/private_server.h"
#include "support/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace commitq::test {
namespace {

using namespace std::chrono_literals;

const LoopHealth& loop(const WorkerHealth& health, std::string_view name) {
    const auto found =
        std::find_if(health.loops.begin(), health.loops.end(), [&](const LoopHealth& one) { return one.name == name; });
    if (found == health.loops.end()) {
        throw std::runtime_error{"no such loop"};
    }
    return *found;
}

bool all_alive(const WorkerHealth& health, bool alive) {
    return std::all_of(health.loops.begin(), health.loops.end(),
                       [&](const LoopHealth& one) { return one.alive == alive; });
}

TEST(WorkerHealth, SaysWhatEachLoopDoesAndWaitsFor) {
    Database database;
    Gate go_on;
    Worker worker{database.options(), {.queues = {"q"}, .heartbeat = 100ms}};
    worker.on("t", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    EXPECT_FALSE(worker.health().started);
    EXPECT_TRUE(worker.health().loops.empty());
    worker.start();
    EXPECT_TRUE(eventually([&] {
        const WorkerHealth health = worker.health();
        return health.started && health.connected && health.since_claim && health.since_heartbeat &&
               health.loops.size() == 5 && all_alive(health, true) && loop(health, "claim").waits_for == "work" &&
               loop(health, "complete").waits_for == "results" && loop(health, "reap").waits_for == "its interval" &&
               loop(health, "heartbeat").waits_for == "its interval" && loop(health, "watch").waits_for == "deadlines";
    }));
    EXPECT_EQ(worker.health().lease_left, std::nullopt);

    database.enqueue("q", "t");
    EXPECT_TRUE(eventually([&] {
        const WorkerHealth health = worker.health();
        return health.held == 1 && health.running == 1 && health.lease_left && *health.lease_left > 0s &&
               *health.lease_left <= 30s;
    }));
    go_on.open();
    EXPECT_TRUE(eventually([&] { return worker.health().held == 0; }));

    EXPECT_TRUE(worker.stop(60s).clean);
    const WorkerHealth after = worker.health();
    EXPECT_FALSE(after.started);
    EXPECT_FALSE(after.connected);
    EXPECT_EQ(after.loops.size(), 5U);
    EXPECT_TRUE(all_alive(after, false));
}

TEST(WorkerHealth, NoLoopIsTakenForDeadBeforeItsThreadRuns) {
    Database database;
    for (int i = 0; i < 20; ++i) {
        Reaper reaper{database.options(), {}};
        EXPECT_FALSE(reaper.health().alive);
        reaper.start();
        EXPECT_TRUE(reaper.health().alive);
        EXPECT_NE(reaper.health().waits_for, "nothing");
        reaper.stop();
        EXPECT_FALSE(reaper.health().alive);

        Worker worker{database.options(), {.queues = {"q"}, .concurrency = 1}};
        worker.on("t", [](JobContext&) { return Outcome::done(); });
        worker.start();
        EXPECT_TRUE(all_alive(worker.health(), true));
        EXPECT_TRUE(worker.stop(60s).clean);
        EXPECT_TRUE(all_alive(worker.health(), false));
    }
}

TEST(WorkerHealth, AServerThatDoesNotAnswer_IsSeenByEachLoopAndForgottenWhenItDoes) {
    PrivateServer server;
    Database database{server.options()};
    Gate go_on;
    ConnectOptions impatient = database.options();
    impatient.connect_timeout = 1s;
    impatient.read_timeout = 1s;
    Worker worker{impatient, {.queues = {"q"}, .lease = 1s, .heartbeat = 100ms}};
    worker.on("t", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    worker.start();
    database.enqueue("q", "t");
    ASSERT_TRUE(eventually([&] { return worker.health().running == 1; }));
    server.freeze();
    EXPECT_TRUE(eventually([&] {
        const WorkerHealth health = worker.health();
        return !health.connected && health.consecutive_errors >= 3 && loop(health, "claim").consecutive_errors > 0 &&
               loop(health, "heartbeat").consecutive_errors > 0;
    }));
    EXPECT_TRUE(eventually([&] { return worker.health().lease_left.value_or(1s) < 0s; })) << "nobody can renew it";
    go_on.open();
    EXPECT_TRUE(eventually([&] { return loop(worker.health(), "complete").consecutive_errors > 0; }));
    EXPECT_TRUE(all_alive(worker.health(), true));
    server.thaw();
    EXPECT_TRUE(eventually([&] {
        const WorkerHealth health = worker.health();
        return health.connected && health.consecutive_errors == 0 && health.held == 0;
    }));
    EXPECT_TRUE(worker.stop(60s).clean);
}

}  // namespace
}  // namespace commitq::test
