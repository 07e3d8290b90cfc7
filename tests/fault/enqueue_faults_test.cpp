// Connections that break under enqueue, and packets that are too large for one of the two sides.
#include "support/database.h"
#include "support/packet_proxy.h"
#include "support/private_server.h"
#include "support/server_facts.h"
#include "unit/thrown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace commitq::test {
namespace {

class EnqueueOverABadNetwork : public ::testing::Test {
protected:
    EnqueueOverABadNetwork() { database.look().run("CREATE TABLE orders (id INT PRIMARY KEY)"); }

    long jobs() { return database.look().number("SELECT COUNT(*) FROM commitq_jobs"); }
    long payloads() { return database.look().number("SELECT COUNT(*) FROM commitq_payloads"); }
    long orders() { return database.look().number("SELECT COUNT(*) FROM orders"); }

    Database database;
    PacketTrap trap;
    PacketProxy proxy{database.tcp_options(), [this](std::string& packet) { return trap.watch(packet); }};
    const Queue queue{"q"};
};

TEST_F(EnqueueOverABadNetwork, BrokenAtAnyStatement_TheTransactionIsLostWithAllItsRows) {
    for (const std::string& word :
         {std::string{"version"}, std::string{"max_allowed_packet"}, std::string{"INSERT INTO `commitq_payloads`"},
          std::string{"INSERT INTO `commitq_jobs`"}}) {
        for (const Passage passage : {Passage::lose, Passage::lose_answer}) {
            SCOPED_TRACE(word + (passage == Passage::lose ? " lost" : "'s answer lost"));
            const mysql::Session session{proxy.options(), mysql::Purpose::handler};
            ASSERT_EQ(mysql_query(session.client(), "START TRANSACTION"), 0);
            ASSERT_EQ(mysql_query(session.client(), "INSERT INTO orders VALUES (1)"), 0);
            trap.set(word, passage);
            const Queue fresh{"q"};
            const auto error = thrown([&] { fresh.enqueue(session.client(), "t", std::string(20'000, 'x')); });
            ASSERT_TRUE(error);
            EXPECT_TRUE(trap.has_snapped());
            EXPECT_EQ(error->code(), Errc::connection_lost) << error->what();
            EXPECT_EQ(error->transaction(), TransactionState::lost);
            EXPECT_EQ(error->repeat(), Repeat::reconnect);
            EXPECT_TRUE(thrown([&] { fresh.enqueue(session.client(), "t", "goes on"); }));
            EXPECT_TRUE(eventually([&] { return orders() + jobs() + payloads() == 0; }));
        }
    }
}

TEST_F(EnqueueOverABadNetwork, EnqueueAutocommitWhoseAnswerIsLost_IsInDoubtAndNotSaidToBeRepeatable) {
    for (const Passage passage : {Passage::lose, Passage::lose_answer}) {
        const mysql::Session session{proxy.options(), mysql::Purpose::handler};
        trap.set("INSERT INTO `commitq_jobs`", passage);
        const auto error = thrown([&] { queue.enqueue_autocommit(session.client(), "t", "x"); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), Errc::connection_lost) << error->what();
        EXPECT_EQ(error->transaction(), TransactionState::in_doubt);
        EXPECT_EQ(error->repeat(), Repeat::never);
        EXPECT_TRUE(eventually([&] { return jobs() == (passage == Passage::lose_answer ? 1 : 0); }));
    }
}

TEST_F(EnqueueOverABadNetwork, EnqueueAutocommitOfALongPayload_TheJobNeverStandsWithoutIt) {
    for (const Passage passage : {Passage::lose, Passage::lose_answer}) {
        for (const std::string& word :
             {std::string{"INSERT INTO `commitq_payloads`"}, std::string{"INSERT INTO `commitq_jobs`"}}) {
            const mysql::Session session{proxy.options(), mysql::Purpose::handler};
            trap.set(word, passage);
            EXPECT_TRUE(thrown([&] { queue.enqueue_autocommit(session.client(), "t", kLongPayload); }));
            EXPECT_EQ(database.violations(), "");
        }
    }
    EXPECT_TRUE(eventually([&] { return jobs() == 1; }));
    EXPECT_EQ(database.violations(), "");
}

TEST_F(EnqueueOverABadNetwork, EachInsertIsSentOnce) {
    std::atomic<int> inserts{0};
    const PacketProxy counting{database.tcp_options(), [&](const std::string& packet) {
                                   inserts += packet.find("INSERT INTO") == std::string::npos ? 0 : 1;
                                   return Passage::pass;
                               }};
    const mysql::Session session{counting.options(), mysql::Purpose::handler};
    ASSERT_EQ(mysql_query(session.client(), "START TRANSACTION"), 0);
    queue.enqueue(session.client(), "t", "short");
    EXPECT_EQ(inserts, 1);
    queue.enqueue(session.client(), "t", kLongPayload);
    EXPECT_EQ(inserts, 3);
    ASSERT_EQ(mysql_query(session.client(), "COMMIT"), 0);
    EXPECT_EQ(jobs(), 2);
}

// ------------------------------------------------------------------------------------------------ packets

/// Sizes around the largest payload whose statement fits into one MiB; each is stored whole or refused with nothing sent.
void expect_whole_or_refused(Database& database, Connection& db) {
    const Queue queue{"q"};
    db.run("CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY)");
    db.run("START TRANSACTION");
    db.run("INSERT INTO orders VALUES (1)");
    const JobId before = queue.enqueue(db, "t", "before");
    std::map<std::size_t, JobId> stored;
    std::size_t refused = 0;
    for (std::size_t size = 522'000; size <= 525'000; size += 125) {
        SessionCounters sent{db, kStatements};
        try {
            stored.emplace(size, queue.enqueue(db, "t", std::string(size, 'p')));
        } catch (const Error& error) {
            ++refused;
            EXPECT_EQ(error.code(), Errc::too_large) << error.what();
            EXPECT_EQ(error.transaction(), TransactionState::intact);
            EXPECT_EQ(error.repeat(), Repeat::never);
            EXPECT_EQ(sent.since(), (Counters{{"Com_select", 1}, {"Questions", 1}})) << "asks for the limits, no more";
        }
    }
    EXPECT_GT(stored.size(), 0U) << "the limit is not far below what fits";
    EXPECT_GT(refused, 0U);
    // Many that fit, one by one, are cut into statements that fit.
    const std::vector<NewJob> jobs(20, NewJob{.type = "t", .payload = std::string(200'000, 'm')});
    EXPECT_EQ(queue.enqueue_many(db, jobs).size(), 20U);
    const std::vector<NewJob> too_large(3, NewJob{.type = "t", .payload = std::string(600'000, 'm')});
    const auto error = thrown([&] { queue.enqueue_many(db, too_large); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::too_large);
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    const JobId after = queue.enqueue(db, "t", "after");
    db.run("COMMIT");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM orders"), 1);
    EXPECT_EQ(database.job(before, "payload"), "before");
    EXPECT_EQ(database.job(after, "payload"), "after");
    for (const auto& [size, id] : stored) {
        EXPECT_TRUE(database.job(id, "payload") == std::string(size, 'p')) << size;
    }
    EXPECT_EQ(database.count("pending"), static_cast<long>(stored.size()) + 22);
    EXPECT_EQ(database.violations(), "");
}

TEST(EnqueueAboveThePacketSize, C34_OfTheServer_RefusedBeforeAnythingIsSent_TheTransactionIsIntact) {
    const PrivateServer server{{"--max-allowed-packet=1M"}};
    Database database{server.options()};
    Connection db = database.connect();
    expect_whole_or_refused(database, db);
}

TEST(EnqueueAboveThePacketSize, C34_OfTheClient_RefusedBeforeAnythingIsSent_TheTransactionIsIntact) {
    Database database;
    const unsigned long limit = 1024UL * 1024UL;
    Connection db = database.connect();
    ASSERT_EQ(mysql_options(db, MYSQL_OPT_MAX_ALLOWED_PACKET, &limit), 0);
    expect_whole_or_refused(database, db);
}

TEST(EnqueueAboveThePacketSize, C34_EnqueueAutocommitIsRefusedTheSameWay) {
    Database database;
    const unsigned long limit = 1024UL * 1024UL;
    Connection db = database.connect();
    ASSERT_EQ(mysql_options(db, MYSQL_OPT_MAX_ALLOWED_PACKET, &limit), 0);
    const Queue queue{"q"};
    const auto error = thrown([&] { queue.enqueue_autocommit(db, "t", std::string(600'000, 'x')); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Errc::too_large);
    queue.enqueue_autocommit(db, "t", "fits");
    EXPECT_EQ(database.count("pending"), 1);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_payloads"), 0);
}

}  // namespace
}  // namespace commitq::test
