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

/// Adds jobs up to @p total: nearly all in one queue and state, a few pending, running and scheduled, so that statistics
/// speak against the index.
void fill(Database& database, int total) {
    constexpr std::string_view kDigits =
        "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION"
        " SELECT 7 UNION SELECT 8 UNION SELECT 9)";
    const long there = database.look().number("SELECT COUNT(*) FROM commitq_jobs");
    database.look().run(fmt::format(
        "INSERT INTO commitq_jobs (queue,type,state,priority,attempt,max_attempts,available_at,owner,lease_until,created_at,"
        "finished_at) SELECT IF(n%50=0,'r','q'),'t',"
        "CASE WHEN n%100<90 THEN 'completed' WHEN n%100<97 THEN 'pending' ELSE 'running' END,IF(n%7=0,n%10,5),1,20,"
        "UTC_TIMESTAMP(6)+INTERVAL IF(n%3=0,1,-1) DAY,x'01',"
        "IF(n%100<97,'1970-01-01',UTC_TIMESTAMP(6)+INTERVAL 30 SECOND),UTC_TIMESTAMP(6),"
        "IF(n%100<90,UTC_TIMESTAMP(6),'1970-01-01') FROM (SELECT a.d+10*b.d+100*c.d+1000*e.d+10000*f.d n FROM"
        " {0} a, {0} b, {0} c, {0} e, {0} f) numbers LIMIT {1}",
        kDigits, total - there));
    database.look().run("ANALYZE TABLE commitq_jobs");
}

/// How a plan reaches the tables: `table:access:index`, a line each, and what it does besides.
std::string plan(Connection& db, const std::string& sql) {
    std::set<std::string> lines;
    db.run("SET SESSION sql_mode='STRICT_ALL_TABLES'");
    for (const Row& row : db.rows("EXPLAIN " + sql)) {
        // MySQL has `partitions` and `filtered`, MariaDB has neither: counted from both ends.
        const bool mysql = row.size() > 10;
        const std::string table = row[2].value_or("");
        const std::string access = row[mysql ? 4 : 3].value_or("");
        const std::string index = row[mysql ? 6 : 5].value_or("");
        const std::string extra = row.back().value_or("");
        if (!table.empty() || extra.find("optimized away") != std::string::npos) {
            lines.insert(fmt::format("{}:{}:{}", table, access, index));
        }
        for (const std::string_view bad : {"filesort", "temporary"}) {
            if (extra.find(bad) != std::string::npos) {
                lines.insert(fmt::format("{} uses {}", table, bad));
            }
        }
    }
    std::string text;
    for (const std::string& line : lines) {
        text += line + "\n";
    }
    return text;
}

TEST(Statements, C6_PlanFlip_EveryPlanIsTheSameAtAnyNumberOfRows) {
    Database database;
    const store::Tables tables{"commitq_"};
    std::map<std::string, std::string> before;
    for (const int rows : {0, 10, 100'000}) {
        if (rows > 0) {
            fill(database, rows);
        }
        for (const store::Statement& statement : store::catalogue(tables)) {
            const std::string name{statement.name};
            const std::string now = plan(database.look(), statement.sql);
            SCOPED_TRACE(fmt::format("{} at {} rows:\n{}", name, rows, now));
            EXPECT_EQ(now.find("uses"), std::string::npos);
            if (statement.sql.find(tables.jobs) != std::string::npos && !name.starts_with("insert")) {
                EXPECT_EQ(now.find("commitq_jobs:ALL"), std::string::npos) << "reads the whole table";
                EXPECT_EQ(now.find("commitq_jobs:index:"), std::string::npos) << "reads a whole index";
                EXPECT_EQ(now.find("index_merge"), std::string::npos);
                const bool by_claim = name.starts_with("look") || name == "claim_select" || name == "find_expired";
                const std::string other = by_claim ? ":PRIMARY" : ":claim";
                EXPECT_EQ(now.find(other), std::string::npos) << "uses the wrong index";
            }
            // An empty table is optimized away in a way of its own; from ten rows on nothing may change.
            if (rows > 10) {
                EXPECT_EQ(now, before[name]);
            }
            before[name] = now;
        }
    }
}

TEST(Statements, TheLookIsAnsweredFromTheIndexAlone) {
    Database database;
    fill(database, 1'000);
    const store::Tables tables{"commitq_"};
    const std::vector<std::string> queues{"q"};
    for (const store::Statement& statement : store::catalogue(tables)) {
        if (statement.name == "look") {
            for (const Row& row : database.look().rows("EXPLAIN " + statement.sql)) {
                const std::string extra = row.back().value_or("");
                EXPECT_TRUE(extra.find("optimized away") != std::string::npos || extra.find("No tables") == 0 ||
                            extra.find("No matching min/max row") == 0)
                    << extra;
            }
        }
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
