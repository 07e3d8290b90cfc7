// Binlog bytes of a job over its whole life.
#include <fmt/format.h>

#include <string>

#include "bench/bench.h"

namespace commitq::bench {
namespace {

double binlog_bytes(Connection& db) {
    double sum = 0;
    for (const Row& row : db.rows("SHOW BINARY LOGS")) {
        sum += std::stod(row[1].value_or("0"));
    }
    return sum;
}

/// Enqueues in transactions of 100 and drains. @returns binlog bytes per job beyond its payload.
double overhead(int jobs, int payload_bytes) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    const std::string payload(static_cast<std::size_t>(payload_bytes), 'x');
    const double before = binlog_bytes(db);
    for (int i = 0; i < jobs; ++i) {
        if (i % 100 == 0) {
            db.run("START TRANSACTION");
        }
        queue.enqueue(db, "t", payload);
        if (i % 100 == 99 || i + 1 == jobs) {
            db.run("COMMIT");
        }
    }
    {
        WorkerProcess process{database, "q"};
        test::eventually([&] { return database.count("completed") == jobs; }, std::chrono::minutes{5});
    }
    return (binlog_bytes(db) - before) / jobs - payload_bytes;
}

}  // namespace

Report bytes(const Options& options) {
    Report report{.bench = "bytes", .rounds = options.rounds};
    const int jobs = options.rows(2'000);
    in_turn(options, {[&] { report.add("binlog_overhead_200", overhead(jobs, 200)); },
                      [&] { report.add("binlog_overhead_4000", overhead(jobs, 4'000)); }});
    return report;
}

}  // namespace commitq::bench
