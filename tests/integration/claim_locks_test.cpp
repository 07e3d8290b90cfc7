// What a claim locks, whom it keeps waiting, and what it reads.
#include "support/database.h"
#include "support/packet_proxy.h"
#include "support/server_facts.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <store/claim.h>
#include <store/schema.h>

#include <algorithm>
#include <ostream>

namespace commitq::test {
namespace {

class ClaimLocks : public ::testing::Test {
protected:
    store::ClaimRange range(int limit) const {
        return {.queue = "q",
                .priority = 5,
                .from = store::kFromTheBeginning,
                .limit = limit,
                .byte_budget = std::size_t{1} << 30U,
                .not_these = {}};
    }

    /// Opens a claim's transaction and stops before its UPDATE. @returns the ids.
    std::vector<JobId> open_claim(mysql::Session& session, int limit) {
        auto replies = session.execute_all(
            "START TRANSACTION;" + store::claim_select_sql(tables, claimant, range(limit)), "claim");
        std::vector<JobId> ids;
        while (replies.back().rows.next()) {
            ids.push_back(replies.back().rows.number(0));
        }
        return ids;
    }

    Database database;
    store::Tables tables{"commitq_"};
    std::vector<std::pair<std::string, int>> types{{"t", 20}};
    store::Claimant claimant = store::make_claimant(core::make_token(), 30s, types);
    mysql::Session first{database.options(), mysql::Purpose::library};
    mysql::Session second{database.options(), mysql::Purpose::library};
};

TEST_F(ClaimLocks, C1_FilesortClaimLocksEverything_ASecondWorkerGetsTheOtherJobs) {
    const auto ids = database.enqueue_many("q", "t", 10);
    EXPECT_EQ(open_claim(first, 2), (std::vector<JobId>{ids[0], ids[1]}));
    if (!database.is_mariadb()) {  // MariaDB doesn't list locks; what the second worker gets shows the same there
        EXPECT_EQ(database.look().number(fmt::format(
                      "SELECT COUNT(DISTINCT LOCK_DATA) FROM performance_schema.data_locks WHERE OBJECT_SCHEMA='{}'"
                      " AND LOCK_TYPE='RECORD' AND INDEX_NAME='PRIMARY'",
                      database.name())),
                  2);
    }
    const auto others = open_claim(second, 10);
    EXPECT_EQ(others, (std::vector<JobId>{ids.begin() + 2, ids.end()}));
}

TEST_F(ClaimLocks, C1_RowsThatAreLookedAtAndNotTakenAreNotLocked) {
    const auto unknown = database.enqueue_many("q", "later-version", 5);
    const auto ids = database.enqueue_many("q", "t", 3);
    Connection another = database.connect();
    const auto is_free = [&](JobId id) {
        return another.rows(fmt::format("SELECT id FROM commitq_jobs WHERE id={} FOR UPDATE SKIP LOCKED", id)).size() ==
               1;
    };
    EXPECT_EQ(open_claim(first, 2), (std::vector<JobId>{ids[0], ids[1]}));
    EXPECT_FALSE(is_free(ids[0]));
    EXPECT_FALSE(is_free(ids[1]));
    EXPECT_TRUE(is_free(ids[2]));
    // MariaDB keeps the locks of rows that it read by a secondary index and that did not match until the claim's end.
    for (const JobId id : unknown) {
        EXPECT_EQ(is_free(id), !database.is_mariadb());
    }
    first.execute("ROLLBACK", "test");
    for (const JobId id : unknown) {
        EXPECT_TRUE(is_free(id));
    }
}

// What the tests around it would look like if they could not see the fault.
TEST_F(ClaimLocks, C2_AtRepeatableReadTheSameClaimWouldBlockProducers) {
    first.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "test");
    EXPECT_TRUE(open_claim(first, 10).empty());
    Connection producer = database.connect();
    producer.run("SET SESSION innodb_lock_wait_timeout = 1");
    const Queue queue{"r"};
    producer.run("START TRANSACTION");
    const auto error = thrown([&] { queue.enqueue(producer, "t", "{}"); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::lock_timeout);
}

TEST_F(ClaimLocks, C2_ClaimBlocksProducers_EnqueueNeverWaitsForAnOpenClaim) {
    EXPECT_TRUE(open_claim(first, 10).empty());
    Connection producer = database.connect();
    producer.run("SET SESSION innodb_lock_wait_timeout = 1");
    const Queue same{"q"};
    const Queue other{"r"};
    producer.run("START TRANSACTION");
    EXPECT_NO_THROW(same.enqueue(producer, "t", "{}"));
    EXPECT_NO_THROW(other.enqueue(producer, "t", "{}"));
    producer.run("COMMIT");
    first.execute("ROLLBACK", "test");
    EXPECT_EQ(open_claim(first, 10).size(), 1U);
    producer.run("START TRANSACTION");
    EXPECT_NO_THROW(same.enqueue(producer, "t", "{}"));
    producer.run("COMMIT");
}

TEST_F(ClaimLocks, C3_NotDueJobsInTheWay_AClaimReadsNoneOfThem) {
    const auto rows_read = [&](int later) {
        std::vector<NewJob> jobs(static_cast<std::size_t>(later),
                                 NewJob{.type = "t", .payload = "{}", .options = {.priority = 1, .delay = 24h}});
        jobs.resize(jobs.size() + static_cast<std::size_t>(later),
                    NewJob{.type = "t", .payload = "{}", .options = {.priority = 5, .delay = 24h}});
        Connection db = database.connect();
        db.run("START TRANSACTION");
        Queue{"q"}.enqueue_many(db, jobs);
        db.run("COMMIT");
        database.enqueue_many("q", "t", 4);
        SessionCounters read{first.client(), kRowsRead};
        const std::vector<std::string> queues{"q"};
        const auto due = store::look(first, tables, queues);
        EXPECT_EQ(due.size(), 2U);
        EXPECT_EQ(std::count_if(due.begin(), due.end(), [](const store::Due& place) { return place.in <= 0us; }), 1);
        EXPECT_EQ(store::claim(first, tables, claimant, range(4)).jobs.size(), 4U);
        long sum = 0;
        for (const auto& [name, count] : read.since()) {
            sum += count;
        }
        return sum;
    };
    const long few = rows_read(5);
    EXPECT_EQ(rows_read(900), few);
}

TEST_F(ClaimLocks, ALateRowBeforeTheHintIsFoundByTheNextLook) {
    Connection late = database.connect();
    late.run("START TRANSACTION");
    const JobId early = Queue{"q"}.enqueue(late, "t", "{}");
    database.enqueue_many("q", "t", 3);
    const auto claimed = store::claim(first, tables, claimant, range(10));
    EXPECT_EQ(claimed.jobs.size(), 3U);
    late.run("COMMIT");

    auto behind = range(10);
    behind.from = claimed.last_available_at;
    EXPECT_TRUE(store::claim(first, tables, claimant, behind).jobs.empty()) << "it stands before the hint";
    const std::vector<std::string> queues{"q"};
    const auto due = store::look(first, tables, queues);
    ASSERT_EQ(due.size(), 1U);
    behind.from = due[0].available_at;
    const auto found = store::claim(first, tables, claimant, behind);
    ASSERT_EQ(found.jobs.size(), 1U);
    EXPECT_EQ(found.jobs[0].id, early);
}

TEST_F(ClaimLocks, JobsOfUnknownTypesAreLeftAlone) {
    const JobId unknown = database.enqueue("q", "later-version");
    const JobId known = database.enqueue("q", "t");
    const auto claimed = store::claim(first, tables, claimant, range(10));
    ASSERT_EQ(claimed.jobs.size(), 1U);
    EXPECT_EQ(claimed.jobs[0].id, known);
    EXPECT_EQ(database.job(unknown, "state"), "pending");
    EXPECT_EQ(database.job(unknown, "attempt"), "0");
}

TEST_F(ClaimLocks, LargePayloadsAreClaimedUpToTheBudgetAndAtLeastOne) {
    for (int i = 0; i < 4; ++i) {
        database.enqueue("q", "t", std::string(10'000, 'x'));
    }
    auto limited = range(10);
    limited.byte_budget = 25'000;
    auto claimed = store::claim(first, tables, claimant, limited);
    EXPECT_EQ(claimed.jobs.size(), 2U);
    EXPECT_TRUE(claimed.more);
    limited.byte_budget = 1;
    claimed = store::claim(first, tables, claimant, limited);
    ASSERT_EQ(claimed.jobs.size(), 1U);
    EXPECT_EQ(claimed.jobs[0].payload, std::string(10'000, 'x'));
    EXPECT_EQ(database.count("pending"), 1);
    EXPECT_EQ(database.violations(), "");
}

/// A server that takes the words for something else: what stands in their place makes the server behind the proxy behave so.
struct OtherServer {
    const char* name;
    const char* instead_of_for_update_skip_locked;

    friend std::ostream& operator<<(std::ostream& out, const OtherServer& server) { return out << server.name; }
};

class SkipLocked : public ClaimLocks, public ::testing::WithParamInterface<OtherServer> {};

TEST_P(SkipLocked, C9_IgnoredByTheServer_AWorkerRefusesToStart) {
    EXPECT_NO_THROW(store::probe_skip_locked(first, second, tables)) << "the server itself is fine";
    PacketProxy proxy{database.tcp_options(), [](std::string& packet) {
                          replace_words(packet, "FOR UPDATE SKIP LOCKED", GetParam().instead_of_for_update_skip_locked);
                          return Passage::pass;
                      }};
    Worker worker{proxy.options(), {.queues = {"q"}}};
    worker.on("t", [](JobContext&) {
        ADD_FAILURE() << "a job ran";
        return Outcome::done();
    });
    database.enqueue("q", "t");
    const auto error = thrown([&] { worker.start(); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::unsupported_server) << error->what();
    EXPECT_NE(std::string_view{error->what()}.find("SKIP LOCKED"), std::string_view::npos) << error->what();
    EXPECT_EQ(database.count("pending"), 1);
    const std::string probe = store::probe_sql(tables);
    EXPECT_TRUE(eventually([&] { return second.execute(probe, "test").rows.size() == 1; })) << "no lock is left behind";
}

INSTANTIATE_TEST_SUITE_P(Servers, SkipLocked,
                         ::testing::Values(OtherServer{"ThatWaits", "FOR UPDATE"}, OtherServer{"ThatLocksNothing", ""},
                                           OtherServer{"ThatDoesNotKnowTheWords", "FOR UPDATE SKIP LOCKER"}),
                         [](const auto& test) { return test.param.name; });

TEST_F(ClaimLocks, C9_AWorkerCutOffWhileItProbes_KeepsNoOtherFromStarting) {
    ASSERT_EQ(first.begin(store::probe_sql(tables), "test").back().rows.size(), 1U);
    ConnectOptions impatient = database.options();
    impatient.read_timeout = 1s;
    Worker worker{impatient, {.queues = {"q"}}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    EXPECT_NO_THROW(worker.start());
    EXPECT_TRUE(worker.stop(60s).clean);
    first.rollback("test");
}

TEST_F(ClaimLocks, MoreQueuesThanOneLookTakesAreAllSeen) {
    std::vector<std::string> queues;
    queues.reserve(250);
    for (int i = 0; i < 250; ++i) {
        queues.push_back(fmt::format("queue-{}", i));
    }
    for (const int i : {0, 9, 10, 199, 200, 249}) {
        database.enqueue(queues[static_cast<std::size_t>(i)], "t");
    }
    std::vector<std::size_t> found;
    for (const store::Due& due : store::look(first, tables, queues)) {
        found.push_back(due.queue);
    }
    EXPECT_EQ(found, (std::vector<std::size_t>{0, 9, 10, 199, 200, 249}));
}

}  // namespace
}  // namespace commitq::test
