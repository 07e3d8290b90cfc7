// What enqueue costs a business transaction, and enqueue_many against a hand-written multi-row INSERT.
#include <fmt/format.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bench.h"

namespace commitq::bench {
namespace {

constexpr int kPayload = 200;
constexpr int kBlocks = 10;
constexpr int kManyBlocks = 4;

/// Runs @p count business transactions, divided among the connections; @p second is what follows the business row.
void transactions(std::vector<Connection>& connections, int count, const std::function<void(Connection&)>& second) {
    std::vector<std::thread> threads;
    for (Connection& db : connections) {
        threads.emplace_back([&, each = count / static_cast<int>(connections.size())] {
            for (int n = 0; n < each; ++n) {
                db.run("START TRANSACTION");
                db.run("INSERT INTO orders (body) VALUES ('an order')");
                second(db);
                db.run("COMMIT");
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

/// Runs both sides in short blocks, one after the other, so that drift of the machine within a round hits both alike.
/// @returns the seconds of each.
std::pair<double, double> alternate(int blocks, const std::function<void()>& ours, const std::function<void()>& plain) {
    std::pair<double, double> seconds{};
    for (int i = 0; i < blocks; ++i) {
        const bool first = i % 2 == 0;
        (first ? seconds.first : seconds.second) += seconds_of(first ? ours : plain);
        (first ? seconds.second : seconds.first) += seconds_of(first ? plain : ours);
    }
    return seconds;
}

void by_hand(MYSQL* db, int jobs) {
    constexpr int kRows = 1'000;
    for (int done = 0; done < jobs; done += kRows) {
        std::string sql = "INSERT INTO commitq_jobs (queue,type,available_at,created_at,payload_size,payload) VALUES ";
        for (int i = 0; i < std::min(kRows, jobs - done); ++i) {
            sql += i == 0 ? "" : ",";
            sql += "('q','t',UTC_TIMESTAMP(6),UTC_TIMESTAMP(6),200,'";
            sql.append(kPayload, 'x');
            sql += "')";
        }
        if (mysql_real_query(db, sql.data(), sql.size()) != 0) {
            throw std::runtime_error{mysql_error(db)};
        }
    }
}

}  // namespace

Report enqueue(const Options& asked) {
    const Options options = asked.with_more_rounds();
    Report report{.bench = "enqueue", .rounds = options.rounds};
    const Queue queue{"q"};
    const std::string payload(kPayload, 'x');
    const std::string plain = fmt::format("INSERT INTO bare (body) VALUES ('{}')", payload);
    const int count = options.rows(2'000);
    const int many = options.rows(20'000);
    Database database;
    Connection look = database.connect();
    look.run("CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, body VARBINARY(64) NOT NULL)");
    look.run("CREATE TABLE bare (id BIGINT AUTO_INCREMENT PRIMARY KEY, body VARBINARY(1024) NOT NULL)");
    const std::vector<NewJob> jobs(static_cast<std::size_t>(many), NewJob{.type = "t", .payload = payload});

    std::vector<std::function<void()>> sides;
    for (const int connections : {1, 8}) {
        sides.emplace_back([&, connections] {
            std::vector<Connection> dbs;
            for (int i = 0; i < connections; ++i) {
                dbs.push_back(database.connect());
            }
            const auto [ours, bare] = alternate(
                kBlocks,
                [&] { transactions(dbs, count / kBlocks, [&](Connection& db) { queue.enqueue(db, "t", payload); }); },
                [&] { transactions(dbs, count / kBlocks, [&](Connection& db) { db.run(plain); }); });
            report.add(fmt::format("enqueue_tx_us_{}c", connections), ours * 1e6 / count);
            report.add(fmt::format("plain_tx_us_{}c", connections), bare * 1e6 / count);
        });
    }
    sides.emplace_back([&] {
        Connection db = database.connect();
        const auto in_transaction = [&](const std::function<void()>& insert) {
            return [&db, insert] {
                db.run("START TRANSACTION");
                insert();
                db.run("COMMIT");
            };
        };
        const auto [ours, floor] = alternate(kManyBlocks, in_transaction([&] { queue.enqueue_many(db, jobs); }),
                                             in_transaction([&] { by_hand(db, many); }));
        report.add("enqueue_many_jobs_per_s", kManyBlocks * many / ours);
        report.add("insert_many_floor_jobs_per_s", kManyBlocks * many / floor);
        db.run("TRUNCATE TABLE commitq_jobs");
    });
    in_turn(options, sides);
    report.ratio("enqueue_tx_vs_plain_1c", "enqueue_tx_us_1c", "plain_tx_us_1c");
    report.ratio("enqueue_tx_vs_plain_8c", "enqueue_tx_us_8c", "plain_tx_us_8c");
    report.values["enqueue_tx_vs_plain"] =
        std::max(report.values["enqueue_tx_vs_plain_1c"], report.values["enqueue_tx_vs_plain_8c"]);
    report.ratio("enqueue_many_vs_floor", "enqueue_many_jobs_per_s", "insert_many_floor_jobs_per_s");
    return report;
}

}  // namespace commitq::bench
