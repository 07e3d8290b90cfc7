// The floor: the work of a worker by hand, with bare C API calls and hand-written SQL. What the server can do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/bench.h"

namespace commitq::bench {
namespace {

/// Claim a batch, complete it, again. The queue has one priority, and the loop knows it.
void loop(const ConnectOptions& options, int batch, FloorLoop kind) {
    Connection connection{options, CLIENT_MULTI_STATEMENTS};
    MYSQL* db = connection;
    connection.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    const std::string select = fmt::format(
        "SELECT id,type,attempt,max_attempts,payload,headers FROM commitq_jobs FORCE INDEX (claim)"
        " WHERE queue='q' AND state='pending' AND priority=5 AND available_at<=UTC_TIMESTAMP(6)"
        " ORDER BY available_at,id LIMIT {} FOR UPDATE SKIP LOCKED",
        batch);
    std::string completion;
    for (;;) {
        const std::vector<std::string> ids = run_all(db, "START TRANSACTION;" + completion + select);
        if (ids.empty()) {
            run_all(db, "COMMIT");
            return;
        }
        const std::string list = fmt::format("{}", fmt::join(ids, ","));
        run_all(db, fmt::format("UPDATE commitq_jobs SET state='running',owner=x'000102030405060708090A0B0C0D0E0F',"
                                "lease_until=UTC_TIMESTAMP(6)+INTERVAL 30 SECOND,started_at=UTC_TIMESTAMP(6),"
                                "attempt=attempt+1,max_attempts=20 WHERE id IN ({});COMMIT",
                                list));
        const std::string complete = fmt::format(
            "UPDATE commitq_jobs SET state='completed',lease_until='1970-01-01',finished_at=UTC_TIMESTAMP(6)"
            " WHERE id IN ({}) AND state='running' AND owner=x'000102030405060708090A0B0C0D0E0F' AND attempt=1",
            list);
        if (kind == FloorLoop::plain) {
            run_all(db, complete);
        } else {
            completion = complete + ";";
        }
    }
}

}  // namespace

std::vector<std::string> run_all(MYSQL* db, const std::string& sql) {
    if (mysql_real_query(db, sql.data(), sql.size()) != 0) {
        throw std::runtime_error{mysql_error(db)};
    }
    std::vector<std::string> ids;
    do {
        if (MYSQL_RES* result = mysql_store_result(db)) {
            while (MYSQL_ROW row = mysql_fetch_row(result)) {
                ids.emplace_back(row[0]);
            }
            mysql_free_result(result);
        }
    } while (mysql_next_result(db) == 0);
    if (mysql_errno(db) != 0) {
        throw std::runtime_error{mysql_error(db)};
    }
    return ids;
}

double floor_drain(Database& database, int connections, int batch, FloorLoop kind) {
    return seconds_of([&] {
        std::vector<std::thread> threads;
        for (int i = 0; i < connections; ++i) {
            threads.emplace_back([&] { loop(database.options(), batch, kind); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    });
}

Report floor(const Options& options) {
    Report report{.bench = "floor", .rounds = options.rounds};
    const int jobs = options.rows(20'000);
    const auto side = [&](const std::string& name, int connections, int batch) {
        return [&report, jobs, name, connections, batch] {
            Database database;
            fill(database, jobs, 200);
            report.add(name, jobs / floor_drain(database, connections, batch));
        };
    };
    in_turn(options, {side("floor_jobs_per_s_2x100", 2, 100), side("floor_jobs_per_s_2x500", 2, 500),
                      side("floor_jobs_per_s_1x100", 1, 100)});
    return report;
}

}  // namespace commitq::bench
