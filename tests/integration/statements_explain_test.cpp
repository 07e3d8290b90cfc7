// The plan of every statement, at 0, 10 and 100,000 rows of skewed data.
#include "support/database.h"

#include <commitq/transaction.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <store/catalogue.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

namespace commitq::test {
namespace {

using ::testing::ContainerEq;

constexpr std::string_view kDigits =
    "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION"
    " SELECT 7 UNION SELECT 8 UNION SELECT 9)";

/// Adds jobs up to @p total: nearly all in one queue and finished, a few pending, running and scheduled, so that statistics
/// speak against the index. Half of them have a payload row.
void fill(Database& database, long total) {
    Connection& db = database.look();
    const long there = db.number("SELECT COUNT(*) FROM commitq_jobs");
    const std::string numbers = fmt::format(
        "(SELECT a.d+10*b.d+100*c.d+1000*e.d+10000*f.d n FROM {0} a, {0} b, {0} c, {0} e, {0} f) numbers", kDigits);
    db.run(
        fmt::format("INSERT INTO commitq_jobs (id,queue,type,state,priority,attempt,max_attempts,available_at,owner,"
                    "lease_until,created_at,finished_at) SELECT n+1,IF(n%50=0,'r','q'),'t',"
                    "CASE WHEN n%100 BETWEEN 10 AND 99 THEN 'completed' WHEN n%100<7 THEN 'pending' ELSE 'running' END,"
                    "IF(n%7=0,n%10,5),1,20,UTC_TIMESTAMP(6)+INTERVAL IF(n%3=0,1,-1) DAY,x'01',"
                    "IF(n%100 BETWEEN 7 AND 9,UTC_TIMESTAMP(6)+INTERVAL 30 SECOND,'1970-01-01'),UTC_TIMESTAMP(6),"
                    "IF(n%100 BETWEEN 10 AND 99,UTC_TIMESTAMP(6),'1970-01-01') FROM {} WHERE n>={} AND n<{}",
                    numbers, there, total));
    db.run(fmt::format("INSERT INTO commitq_payloads (id,payload) SELECT n+1,'' FROM {} WHERE n>={} AND n<{}", numbers,
                       there / 2, total / 2));
}

/// How each table of a statement is reached: `table by index`, `table by no index` for one that is read whole, or
/// `nothing but a dive` where the optimizer has answered from the index already.
std::set<std::string> plan(Connection& db, const std::string& sql) {
    std::set<std::string> steps;
    for (const Row& row : db.rows("EXPLAIN FORMAT=TRADITIONAL " + sql)) {
        const bool mysql = row.size() > 10;  // MySQL has the columns `partitions` and `filtered` besides
        const std::string table = row[2].value_or("");
        const std::string access = row[mysql ? 4 : 3].value_or("");
        const std::string index = row[mysql ? 6 : 5].value_or("");
        const std::string extra = row.back().value_or("");
        const auto says = [&](std::string_view what) { return extra.find(what) != std::string::npos; };
        if (says("filesort") || says("temporary") || access == "index_merge") {
            steps.insert(table + " with " + extra + access);
        }
        if (says("optimized away") || says("No matching min/max row")) {
            steps.insert("nothing but a dive");
        } else if (access == "ALL" || access == "index") {
            steps.insert(table + " by no index");
        } else if (!index.empty()) {
            steps.insert(table + " by " + index);
        }
    }
    return steps;
}

std::set<std::string> intended_plan(std::string_view name) {
    static const std::map<std::string_view, std::set<std::string>> others{
        {"insert_payloads", {"commitq_payloads by no index"}},
        {"insert_jobs", {"commitq_jobs by no index"}},
        {"look", {"nothing but a dive"}},
        {"look_queues", {"nothing but a dive"}},
        {"better", {"nothing but a dive"}},
        {"claim_select", {"commitq_jobs by claim"}},
        {"find_expired", {"commitq_jobs by claim"}},
        {"read_payloads", {"commitq_payloads by PRIMARY"}},
        {"take_duty", {"commitq_duties by PRIMARY"}},
        {"duty_done", {"commitq_duties by PRIMARY"}},
        {"probe", {"commitq_duties by PRIMARY"}},
        {"upsert_worker", {"commitq_workers by no index"}},
        {"delete_worker", {"commitq_workers by PRIMARY"}},
        {"forget_workers", {"commitq_workers by no index"}},  // as many rows as there are processes
        {"register_queues", {"commitq_queues by no index"}},
        {"list_queues", {"commitq_queues by no index"}},
        {"read_version", {"nothing but a dive"}},
        {"record_version", {"commitq_schema by no index"}},
    };
    const auto found = others.find(name);
    return found == others.end() ? std::set<std::string>{"commitq_jobs by PRIMARY"} : found->second;
}

TEST(Statements, C6_PlanFlip_EveryPlanIsTheSameAtAnyNumberOfRows) {
    Database database;
    const store::Tables tables{"commitq_"};
    const auto expect_intended = [&](std::string_view when) {
        for (const store::Statement& statement : store::catalogue(tables)) {
            EXPECT_THAT(plan(database.look(), statement.sql), ContainerEq(intended_plan(statement.name)))
                << statement.name << " " << when;
        }
    };
    expect_intended("without rows");
    for (const long rows : {10L, 110L, 100'000L}) {
        fill(database, rows);
        expect_intended(fmt::format("at {} rows, with statistics from before them", rows));
        database.look().run("ANALYZE TABLE commitq_jobs, commitq_payloads");
        expect_intended(fmt::format("at {} rows", rows));
    }
}

TEST(Statements, TheCatalogueHasEveryStatementThatTheHeadersDeclare) {
    std::set<std::string> declared;
    const std::regex function{R"((\w+)_sql\()"};
    for (const auto& file : std::filesystem::directory_iterator{std::string{COMMITQ_SOURCE_DIR} + "/src/store"}) {
        if (file.path().extension() != ".h") {
            continue;
        }
        std::ifstream input{file.path()};
        const std::string text{std::istreambuf_iterator<char>{input}, {}};
        for (std::sregex_iterator at{text.begin(), text.end(), function}; at != std::sregex_iterator{}; ++at) {
            declared.insert((*at)[1]);
        }
    }
    std::set<std::string> listed;
    for (const store::Statement& statement : store::catalogue(store::Tables{"commitq_"})) {
        listed.insert(std::string{statement.name});
    }
    EXPECT_THAT(listed, ContainerEq(declared));
    EXPECT_GT(declared.size(), 20U);
}

}  // namespace
}  // namespace commitq::test
