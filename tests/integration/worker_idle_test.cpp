// What a worker with nothing to do costs the server.
#include "support/packet_proxy.h"
#include "support/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>

namespace commitq::test {
namespace {

/// Counts what a worker sends. Its heartbeats are the clock: one a second.
class Sent {
public:
    Passage watch(const std::string& packet) {
        const std::scoped_lock lock{mutex_};
        constexpr char kQuery = 3;
        if (packet.empty() || packet.front() != kQuery) {
            return Passage::pass;
        }
        ++statements_;
        heartbeats_ += packet.find("heartbeat_at=UTC_TIMESTAMP(6),held=") == std::string::npos ? 0 : 1;
        if (packet.find("SELECT MIN(priority)") != std::string::npos) {
            looks_.push_back(std::chrono::steady_clock::now());
        }
        return Passage::pass;
    }
    int heartbeats() {
        const std::scoped_lock lock{mutex_};
        return heartbeats_;
    }
    int statements() {
        const std::scoped_lock lock{mutex_};
        return statements_;
    }
    std::vector<std::chrono::steady_clock::time_point> looks() {
        const std::scoped_lock lock{mutex_};
        return looks_;
    }

private:
    std::mutex mutex_;
    int statements_ = 0;
    int heartbeats_ = 0;
    std::vector<std::chrono::steady_clock::time_point> looks_;
};

TEST(IdleWorker, C40_TwoHundredIdleQueues_CostAFewStatementsASecondOutOfStep) {
    Database database;
    Sent sent;
    const PacketProxy proxy{database.tcp_options(), [&](const std::string& packet) { return sent.watch(packet); }};
    std::vector<std::string> queues;
    queues.reserve(200);
    for (int i = 0; i < 200; ++i) {
        queues.push_back(fmt::format("queue-{}", i));
    }
    Worker worker{proxy.options(), {.queues = queues, .heartbeat = 1s}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.start();
    ASSERT_TRUE(eventually([&] { return sent.heartbeats() >= 2; })) << "it is idle by now";
    const int statements_before = sent.statements();
    const int heartbeats_before = sent.heartbeats();
    const std::size_t looks_before = sent.looks().size();
    // Looks that are slow, as on a busy machine, are fewer.
    ASSERT_TRUE(eventually([&] {
        return sent.heartbeats() >= heartbeats_before + 5 && sent.looks().size() >= looks_before + 10;
    })) << "it looks all the time";
    const int statements = sent.statements() - statements_before;
    EXPECT_LE(statements, 20 * (sent.heartbeats() - heartbeats_before + 1));

    const auto looks = sent.looks();
    std::vector<std::chrono::steady_clock::duration> pauses;
    for (std::size_t i = looks_before + 1; i < looks.size(); ++i) {
        pauses.push_back(looks[i] - looks[i - 1]);
    }
    const auto [shortest, longest] = std::minmax_element(pauses.begin(), pauses.end());
    EXPECT_GT(*longest - *shortest, *shortest / 10) << "no two pauses are alike: workers don't stay in step";

    const JobId id = database.enqueue(queues.back(), "t");
    EXPECT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
}

}  // namespace
}  // namespace commitq::test
