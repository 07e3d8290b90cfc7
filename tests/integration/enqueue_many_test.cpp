// Many jobs in few statements: each keeps its own id, payload and options.
#include "support/database.h"
#include "support/server_facts.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace commitq::test {
namespace {

/// Payloads that tell who they belong to, some short, some long, in no regular order.
std::vector<NewJob> mixed_jobs(std::string_view who, std::size_t count) {
    std::vector<NewJob> jobs;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t filler = i % 7 == 3 || i % 11 == 5 ? 1'025 + i % 3'000 : i % 900;
        jobs.push_back({.type = fmt::format("type-{}", i % 3),
                        .payload = fmt::format("{}:{}:{}", who, i, std::string(filler, 'z')),
                        .options = {.priority = static_cast<int>(i % 10),
                                    .delay = std::chrono::seconds{i % 5},
                                    .headers = {{"n", std::to_string(i)}}}});
    }
    return jobs;
}

std::vector<JobId> enqueue_committed(Connection& db, const Queue& queue, std::span<const NewJob> jobs) {
    db.run("START TRANSACTION");
    auto ids = queue.enqueue_many(db, jobs);
    db.run("COMMIT");
    return ids;
}

/// Every job stands under its own id, with all that is its own.
void expect_each_its_own(Database& database, std::span<const NewJob> jobs, std::span<const JobId> ids) {
    ASSERT_EQ(ids.size(), jobs.size());
    std::map<JobId, Row> rows;
    for (Row& row :
         database.look().rows("SELECT id,type,priority,TIMESTAMPDIFF(SECOND,created_at,available_at),headers,"
                              "payload FROM commitq_jobs_view")) {
        const JobId id = std::stoull(*row[0]);
        rows.emplace(id, std::move(row));
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        ASSERT_TRUE(rows.contains(ids[i])) << "job " << i << " got the id " << ids[i];
        const Row& row = rows[ids[i]];
        const NewJob& job = jobs[i];
        EXPECT_EQ(row[1], job.type);
        EXPECT_EQ(row[2], std::to_string(job.options.priority));
        EXPECT_EQ(row[3], std::to_string(std::chrono::duration_cast<std::chrono::seconds>(job.options.delay).count()));
        EXPECT_EQ(row[4], fmt::format("n: {}\n", i));
        ASSERT_TRUE(row[5] == job.payload) << "job " << i << " has the payload " << row[5]->substr(0, 20);
    }
}

TEST(EnqueueMany, ShortAndLongPayloadsEachStandWithTheirJob) {
    Database database;
    Connection db = database.connect();
    const auto jobs = mixed_jobs("a", 2'000);  // several statements
    expect_each_its_own(database, jobs, enqueue_committed(db, Queue{"q"}, jobs));
    EXPECT_EQ(database.violations(), "");
}

TEST(EnqueueMany, TheIdsAreTheRealOnesAtAnIncrementOfSeven) {
    Database database;
    Connection db = database.connect();
    db.run("SET SESSION auto_increment_increment=7, SESSION auto_increment_offset=3");
    const auto jobs = mixed_jobs("a", 300);
    const auto ids = enqueue_committed(db, Queue{"q"}, jobs);
    expect_each_its_own(database, jobs, ids);
    for (const JobId id : ids) {
        EXPECT_EQ(id % 7, 3U);
    }
}

TEST(EnqueueMany, ConcurrentProducersDoNotMixTheirJobsUp) {
    Database database;
    const Queue queue{"q"};
    constexpr std::size_t kThreads = 4;
    constexpr std::size_t kRounds = 10;
    std::vector<std::vector<std::pair<JobId, std::string>>> made(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            Connection db = database.connect();
            db.run(
                fmt::format("SET SESSION auto_increment_increment={}, SESSION auto_increment_offset={}", i + 1, i + 1));
            for (std::size_t round = 0; round < kRounds; ++round) {
                const auto jobs = mixed_jobs(fmt::format("{}-{}", i, round), 40);
                const auto ids = enqueue_committed(db, queue, jobs);
                for (std::size_t j = 0; j < jobs.size(); ++j) {
                    made[i].emplace_back(ids.at(j), jobs[j].payload);
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    std::set<JobId> ids;
    for (const auto& of_thread : made) {
        for (const auto& [id, payload] : of_thread) {
            EXPECT_TRUE(ids.insert(id).second) << id;
            ASSERT_TRUE(database.job(id, "payload") == payload) << id << ": " << payload.substr(0, 20);
        }
    }
    EXPECT_EQ(ids.size(), kThreads * kRounds * 40);
    EXPECT_EQ(database.count("pending"), static_cast<long>(ids.size()));
    EXPECT_EQ(database.violations(), "");
}

TEST(EnqueueMany, RollbackLeavesNeitherJobsNorPayloads) {
    Database database;
    Connection db = database.connect();
    db.run("START TRANSACTION");
    Queue{"q"}.enqueue_many(db, mixed_jobs("a", 500));
    db.run("ROLLBACK");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_jobs"), 0);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_payloads"), 0);
}

TEST(EnqueueMany, FiveHundredShortJobsAreOneInsert) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    const std::vector<NewJob> jobs(500, NewJob{.type = "t", .payload = "{}"});
    db.run("START TRANSACTION");
    SessionCounters sent{db, kStatements};
    EXPECT_EQ(queue.enqueue_many(db, jobs).size(), 500U);
    EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Com_select", 2}, {"Questions", 3}})) << "version and limits";
    queue.enqueue_many(db, jobs);
    EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Com_select", 1}, {"Questions", 2}}));
    queue.enqueue_many(db, std::span{jobs}.first(1));
    EXPECT_EQ(sent.since(), (Counters{{"Com_insert", 1}, {"Questions", 1}}));
}

TEST(EnqueueMany, NoJobsAreNoStatementButNeedATransactionAllTheSame) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    db.run("START TRANSACTION");
    SessionCounters sent{db, kStatements};
    EXPECT_TRUE(queue.enqueue_many(db, {}).empty());
    EXPECT_EQ(sent.since(), Counters{});
    db.run("COMMIT");
    const auto error = thrown([&] { queue.enqueue_many(db, {}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::not_in_transaction);
}

TEST(EnqueueMany, OneBadJobAndNothingIsSent) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    auto jobs = mixed_jobs("a", 100);
    jobs.back().options.priority = 10;
    db.run("START TRANSACTION");
    SessionCounters sent{db, kStatements};
    expect_invalid([&] { queue.enqueue_many(db, jobs); }, "enqueue", "priority");
    EXPECT_EQ(sent.since(), Counters{});
    jobs.back().options.priority = 9;
    EXPECT_EQ(queue.enqueue_many(db, jobs).size(), 100U);
}

TEST(EnqueueMany, WhenALaterStatementFailsTheCallerIsToldThatAPartIsThere) {
    Database database;
    database.look().run(
        "CREATE TRIGGER refuse BEFORE INSERT ON commitq_jobs FOR EACH ROW IF NEW.type='refused' THEN"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='refused'; END IF");
    Connection db = database.connect();
    const Queue queue{"q"};
    const std::string large(400'000, 'x');  // two fit into a statement
    std::vector<NewJob> jobs(5, NewJob{.type = "t", .payload = large});
    jobs[4].type = "refused";
    db.run("START TRANSACTION");
    const auto error = thrown([&] { queue.enqueue_many(db, jobs); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::server);
    EXPECT_EQ(error->transaction(), TransactionState::partial);
    EXPECT_EQ(error->repeat(), Repeat::transaction);
    db.run("ROLLBACK");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_jobs"), 0);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_payloads"), 0);

    // The first statement of a call leaves nothing behind.
    db.run("START TRANSACTION");
    const JobId before = queue.enqueue(db, "t", "before");
    const auto intact = thrown([&] { queue.enqueue(db, "refused", "short"); });
    ASSERT_TRUE(intact);
    EXPECT_EQ(intact->transaction(), TransactionState::intact);
    db.run("COMMIT");
    EXPECT_EQ(database.job(before, "payload"), "before");
    EXPECT_EQ(database.count("pending"), 1);
}

}  // namespace
}  // namespace commitq::test
