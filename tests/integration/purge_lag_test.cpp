// Claims while an old snapshot keeps the server from purging what finished jobs leave behind in the index.
#include "support/private_server.h"
#include "support/recorder.h"

#include <core/random.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <store/claim.h>
#include <store/finish.h>
#include <store/tables.h>
#include <worker/claim_plan.h>

#include <numeric>
#include <set>

namespace commitq::test {
namespace {

constexpr int kBatch = 50;
constexpr std::size_t kRounds = 60;

/// Jobs, and a snapshot older than all that becomes of them.
class PurgeLag {
public:
    explicit PurgeLag(Database& database) : snapshot_{database.connect()}, late_{database.connect()} {
        snapshot_.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        snapshot_.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        for (std::size_t i = 0; i < kRounds; ++i) {  // each with a time of its own
            database.enqueue_many("q", "t", kBatch);
        }
        late_.run("START TRANSACTION");
        late_job_ = Queue{"q"}.enqueue(late_, "t", "{}");
        late_.run(
            fmt::format("UPDATE commitq_jobs SET available_at=created_at-INTERVAL 1 HOUR WHERE id={}", late_job_));
    }

    /// A job that stands before all others.
    [[nodiscard]] JobId late_job() const { return late_job_; }
    void commit_late_job() { late_.run("COMMIT"); }

private:
    Connection snapshot_;
    Connection late_;
    JobId late_job_ = 0;
};

/// What a worker does, step by step.
class PurgeLagOfClaims : public ::testing::Test {
protected:
    PurgeLagOfClaims() { database.look().run("SET GLOBAL innodb_monitor_enable='lock_rec_lock_requests'"); }

    /// Entries that the server has tried to lock, those of finished jobs too: each that a claim comes across. Counters of rows
    /// leave them out.
    long tried() {
        return database.look().number(
            "SELECT COUNT FROM information_schema.innodb_metrics WHERE name='lock_rec_lock_requests'");
    }

    store::ClaimResult claim(int priority, std::string_view from) {
        const std::vector<std::pair<std::string, int>> types{{"t", 20}};
        return store::claim(session, tables, store::make_claimant(owner, 1h, types),
                            {.queue = "q",
                             .priority = priority,
                             .from = from,
                             .limit = kBatch,
                             .byte_budget = 1'000'000,
                             .not_these = {}});
    }
    void look() { plan.looked(store::look(session, tables, queues), core::Clock::now(), 0s); }

    /// Claims a batch from where the plan says, and completes it. @returns how many entries the claim tried to lock.
    long claim_and_complete() {
        auto target = plan.next();
        if (!target) {
            look();
            target = plan.next();
        }
        if (!target) {
            return 0;
        }
        const long before = tried();
        const store::ClaimResult result = claim(target->priority, target->from);
        const long cost = tried() - before;
        plan.claimed(*target, result.last_available_at, result.more);
        std::vector<store::Finish> finishes;
        for (const store::ClaimedJob& job : result.jobs) {
            EXPECT_TRUE(claimed.insert(job.id).second) << "claimed twice";
            finishes.push_back({.id = job.id, .attempt = job.attempt});
        }
        store::finish(session, tables, owner, finishes);
        return cost;
    }

    const PrivateServer server;  ///< Its counters are the server's.
    Database database{server.options()};
    PurgeLag lag{database};
    const store::Tables tables{"commitq_"};
    const core::Token owner = core::make_token();
    const std::vector<std::string> queues{"q"};
    mysql::Session session{database.options(), mysql::Purpose::library};
    worker::ClaimPlan plan{1, QueueOrder::round_robin};
    std::set<JobId> claimed;
};

TEST_F(PurgeLagOfClaims, C8_AClaimReadsNoMoreAfterManyFinishedJobs_AndMissesNone) {
    look();
    std::vector<long> costs;
    for (std::size_t i = 0; i < kRounds; ++i) {
        costs.push_back(claim_and_complete());
    }
    EXPECT_EQ(claimed.size(), kRounds * kBatch);
    const long early = std::accumulate(costs.begin() + 1, costs.begin() + 11, 0L);
    const long in_the_end = std::accumulate(costs.end() - 10, costs.end(), 0L);
    EXPECT_GE(early, 10 * kBatch) << "the counter sees what a claim locks";
    EXPECT_LT(in_the_end, 2 * early);

    // Behind the hint of all those claims.
    lag.commit_late_job();
    EXPECT_TRUE(claim(5, "2100-01-01 00:00:00.000000").jobs.empty());
    look();
    claim_and_complete();
    EXPECT_TRUE(claimed.contains(lag.late_job()));
    EXPECT_EQ(database.count("completed"), static_cast<long>(kRounds) * kBatch + 1);
    EXPECT_EQ(database.violations(), "");

    // Without a hint: all that was finished stands in the way, and is what the counter would have seen. That of MariaDB
    // doesn't show it: there, this test shows what the claims find, and not what they cost.
    database.enqueue_many("q", "t", kBatch);
    const long before = tried();
    EXPECT_EQ(claim(5, store::kFromTheBeginning).jobs.size(), static_cast<std::size_t>(kBatch));
    if (!database.is_mariadb()) {
        EXPECT_GT(tried() - before, in_the_end) << "one claim costs more than ten with a hint";
    }
}

TEST(PurgeLagOfAWorker, C8_RunsAllJobsOnce_ALateCommitToo) {
    Database database;
    PurgeLag lag{database};
    Runs runs;
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{database.options(), {.queues = {"q"}, .batch = kBatch, .observer = recorder}};
    worker.on("t", [&](JobContext& job) {
        runs.add(job.id());
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(eventually([&] { return runs.jobs() >= kRounds * kBatch / 2; }));
    lag.commit_late_job();
    EXPECT_TRUE(eventually([&] { return database.count("completed") == static_cast<long>(kRounds) * kBatch + 1; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(runs.of(lag.late_job()), 1);
    EXPECT_TRUE(runs.repeated().empty());
    EXPECT_EQ(recorder->error_text(), "");
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
