// Rows that are broken, and results that the server refuses: only the job in question suffers.
#include "support/private_server.h"
#include "support/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace commitq::test {
namespace {

class WorkerData : public ::testing::Test {
protected:
    WorkerOptions options(WorkerOptions more = {}) {
        more.queues = {"q"};
        more.observer = recorder;
        return more;
    }

    Database database;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
};

TEST_F(WorkerData, C26_APayloadDeletedOrChangedByHand_MakesThatJobDeadAndNoOther) {
    std::vector<JobId> ids;
    for (int i = 0; i < 30; ++i) {
        ids.push_back(database.enqueue("q", "t", std::string(static_cast<std::size_t>(2'000 + i), 'x')));
    }
    const auto payload_of = [&](JobId id) {
        return database.look().value(fmt::format("SELECT payload_id FROM commitq_jobs WHERE id={}", id));
    };
    database.look().run("DELETE FROM commitq_payloads WHERE id=" + payload_of(ids[7]));
    database.look().run("UPDATE commitq_payloads SET payload='short' WHERE id=" + payload_of(ids[8]));
    const JobId cut = database.enqueue("q", "t", "inline");
    database.look().run(fmt::format("UPDATE commitq_jobs SET payload='in' WHERE id={}", cut));
    Runs runs;
    Worker worker{database.options(), options()};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 28 && database.count("dead") == 3; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    for (const JobId id : {ids[7], ids[8], cut}) {
        EXPECT_EQ(database.job(id, "state"), "dead");
        EXPECT_NE(database.job(id, "last_error"), "");
        EXPECT_EQ(database.job(id, "attempt"), "1");
        EXPECT_EQ(runs.of(id), 0) << "the handler never sees half a payload";
    }
    EXPECT_EQ(recorder->error_text(), "");
}

TEST_F(WorkerData, HeadersBrokenByHandAreLeftOutAsFarAsTheyAreBroken) {
    const JobId id = database.enqueue("q", "t", "{}", {.headers = {{"a", "1"}, {"b", "2"}}});
    database.look().run(
        fmt::format("UPDATE commitq_jobs SET headers=x'613A20310A00FF0A623A0A633A20330A' WHERE id={}", id));
    Worker worker{database.options(), options()};
    worker.on("t", [&](JobContext& job) {
        EXPECT_EQ(job.headers(), (Headers{{"a", "1"}, {"b", ""}, {"c", "3"}}));
        return Outcome::done();
    });
    EXPECT_EQ(worker.run_once(), 1U);
}

TEST_F(WorkerData, C26_AResultThatTheServerRefuses_KeepsNoOtherFromBeingWritten) {
    Faults faults{database};
    const auto ids = database.enqueue_many("q", "t", 100);
    faults.arm("running", "completed", 1644, ids[50]);
    std::atomic<int> bad_runs{0};
    Worker worker{database.options(), options({.lease = 3s})};
    worker.on("t", [&](JobContext& job) {
        bad_runs += job.id() == ids[50] ? 1 : 0;
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 99; }));
    EXPECT_TRUE(eventually([&] { return recorder->count("lease_lost", ids[50]) >= 1; })) << "given up, for the reaper";
    EXPECT_EQ(database.violations(), "");
    faults.disarm();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 100; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(std::to_string(bad_runs), database.job(ids[50], "attempt"));
    EXPECT_GE(bad_runs, 2);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_jobs WHERE attempt<>1"), 1);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerData, C26_EachRefusedTransition_StopsNoOther) {
    const std::vector<std::pair<std::string, Outcome>> kinds = {{"completed", Outcome::done()},
                                                                {"pending", Outcome::retry("again", 1h)},
                                                                {"dead", Outcome::dead("no")},
                                                                {"cancelled", Outcome::cancel()}};
    Faults faults{database};
    for (const auto& [state, outcome] : kinds) {
        const auto ids = database.enqueue_many("q", state, 30);
        faults.arm("running", state, 1644, ids[3]);
    }
    Worker worker{database.options(), options({.reaper = false})};
    for (const auto& kind : kinds) {
        worker.on(kind.first, [outcome = kind.second](JobContext&) { return outcome; });
    }
    worker.start();
    for (const auto& kind : kinds) {
        const std::string written = fmt::format(
            "SELECT COUNT(*) FROM commitq_jobs WHERE type='{}' AND state='{}' AND attempt=1", kind.first, kind.first);
        EXPECT_TRUE(eventually([&] { return database.look().number(written) == 29; })) << kind.first;
    }
    EXPECT_TRUE(eventually([&] { return recorder->count("lease_lost") == 4; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.count("running"), 4);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerData, C26_AJobThatCannotBeClaimed_KeepsNoOtherFromBeingClaimed) {
    Faults faults{database};
    const auto ids = database.enqueue_many("q", "t", 100);
    for (const std::size_t bad : {std::size_t{0}, std::size_t{40}, std::size_t{99}}) {
        faults.arm("pending", "running", 1644, ids[bad]);
    }
    Worker worker{database.options(), options()};
    worker.on("t", [&](JobContext&) { return Outcome::done(); });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 97; }));
    EXPECT_EQ(database.count("pending"), 3);
    EXPECT_EQ(database.job(ids[40], "attempt"), "0");
    EXPECT_GE(recorder->errors_with("claim", 1644), 1U);
    EXPECT_EQ(database.violations(), "");
    faults.disarm();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 100; })) << "tried again after a while";
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerData, C26_ManyJobsThatCannotBeClaimed_KeepNoOtherQueueWaiting) {
    Faults faults{database};
    const auto bad = database.enqueue_many("q", "t", 20);
    for (const JobId id : bad) {
        faults.arm("pending", "running", 1644, id);
    }
    database.enqueue_many("q", "t", 50);
    database.enqueue_many("other", "t", 50);
    Worker worker{database.options(), {.queues = {"q", "other"}, .observer = recorder}};
    worker.on("t", [&](JobContext&) { return Outcome::done(); });
    worker.start();
    EXPECT_TRUE(eventually([&] { return recorder->errors_with("claim", 1644) >= 20; }));
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 100; }));
    EXPECT_EQ(database.count("pending"), 20);
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerData, C26_AJobThatCannotBeClaimed_IsLeftOutByRunOnceToo) {
    Faults faults{database};
    const auto ids = database.enqueue_many("q", "t", 10);
    faults.arm("pending", "running", 1644, ids[0]);
    Worker worker{database.options(), options()};
    worker.on("t", [&](JobContext&) { return Outcome::done(); });
    EXPECT_EQ(worker.run_once(), 9U);
    EXPECT_EQ(recorder->errors_with("claim", 1644), 1U);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerData, C26_ALeaseThatCannotBeRenewed_CostsNoOtherItsOwn) {
    Faults faults{database};
    const auto ids = database.enqueue_many("q", "t", 8);
    faults.arm("running", "running", 1644, ids[3]);
    Gate go_on;
    Worker worker{database.options(), options({.lease = 2s, .heartbeat = 100ms})};
    worker.on("t", [&](JobContext&) {
        go_on.wait();
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return recorder->count("lease_lost", ids[3]) == 1; }));
    EXPECT_EQ(database.violations(), "");
    go_on.open();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 8; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(recorder->count("lease_lost"), 1U);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerData, C26_AJobThatCannotBeReaped_KeepsNoOtherFromBeingReaped) {
    Faults faults{database};
    const auto ids = database.enqueue_many("q", "t", 100);
    database.look().run("INSERT INTO commitq_queues (queue,created_at) VALUES ('q',NOW())");
    database.look().run(
        "UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=9,"
        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6)");
    faults.arm("running", "pending", 1644, ids[10]);
    faults.arm("running", "pending", 1644, ids[77]);
    Reaper reaper{database.options(), {.batch = 30, .observer = recorder}};
    EXPECT_EQ(reaper.reap_once().returned, 98U);
    EXPECT_EQ(recorder->errors_with("reap", 1644), 2U);
    EXPECT_EQ(database.count("running"), 2);
    EXPECT_EQ(database.violations(), "");
    faults.disarm();
    EXPECT_EQ(reaper.reap_once().returned, 2U);
    EXPECT_EQ(database.violations(), "");
}

TEST_F(WorkerData, C26_AJobThatCannotBeReleased_KeepsNoOtherFromGoingBack) {
    Faults faults{database};
    Gate started;
    Gate go_on;
    Worker worker{database.options(), options({.concurrency = 1, .reaper = false})};
    worker.on("quick", [](JobContext&) { return Outcome::done(); });
    worker.on("slow", [&](JobContext&) {
        started.open();
        go_on.wait();
        return Outcome::done();
    });
    worker.start();
    database.enqueue("q", "quick");
    ASSERT_TRUE(eventually([&] { return recorder->count("completed") == 1; }));
    database.enqueue("q", "slow");
    ASSERT_TRUE(started.wait());
    const auto ids = database.enqueue_many("q", "slow", 20);
    ASSERT_TRUE(eventually([&] { return recorder->count("claimed", ids[19]) == 1; }));
    faults.arm("running", "pending", 1644, ids[7]);
    std::thread opening{[&] {
        EXPECT_TRUE(eventually([&] { return recorder->count("released") == 19; }));
        go_on.open();
    }};
    auto stopping = std::async(std::launch::async, [&] { return worker.stop(10min); });
    EXPECT_TRUE(eventually([&] { return stopping.wait_for(0s) == std::future_status::ready; }))
        << "it doesn't wait for the one that can't be released";
    opening.join();
    const StopReport report = stopping.get();
    EXPECT_EQ(report.released, 19U);
    EXPECT_EQ(report.abandoned, 1U);
    EXPECT_FALSE(report.clean);
    EXPECT_EQ(recorder->count("lease_lost", ids[7]), 1U);
    EXPECT_EQ(database.job(ids[7], "state"), "running");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_jobs WHERE state='pending' AND attempt=0"), 19);
    EXPECT_EQ(database.violations(), "");
}

// Each result is small enough, but all together are above what the server takes in one packet.
TEST(WorkerPackets, ManyLongErrorTexts_AreWrittenInPiecesThatFit) {
    const PrivateServer server{{"--max-allowed-packet=65536"}};
    Database database{server.options()};
    constexpr int kJobs = 200;
    database.enqueue_many("q", "t", kJobs);
    std::string text;
    for (int i = 0; i < 1'000; ++i) {
        text += "\xf0\x9f\x94\xa5";
    }
    const auto recorder = std::make_shared<Recorder>();
    Runs runs;
    Worker worker{database.options(), {.queues = {"q"}, .concurrency = 16, .observer = recorder}};
    std::atomic<int> running{0};
    Gate many;
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        if (++running == 16) {
            many.open();
        }
        many.wait();  // so that results come sixteen at once, 130 kB
        return Outcome::dead(text);
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return database.count("dead") == kJobs; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_TRUE(runs.repeated().empty());
    EXPECT_EQ(database.look().number("SELECT MIN(CHAR_LENGTH(last_error)) FROM commitq_jobs"), 1'000);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
