#include "support/server_facts.h"

#include <fmt/format.h>
#include <mysql/statement.h>

#include <algorithm>
#include <array>
#include <utility>

namespace commitq::test {
namespace {

Counters operator-(Counters left, const Counters& right) {
    for (const auto& [name, value] : right) {
        left[name] -= value;
    }
    std::erase_if(left, [](const auto& counter) { return counter.second == 0; });
    return left;
}

}  // namespace

SessionCounters::SessionCounters(MYSQL* client, std::string_view condition)
    : client_{client}, sql_{fmt::format("SHOW SESSION STATUS WHERE {}", condition)} {
    const Counters before = read();
    last_ = read();
    cost_ = last_ - before;
}

Counters SessionCounters::since() {
    Counters now = read();
    Counters changed = now - last_ - cost_;
    last_ = std::move(now);
    return changed;
}

Counters SessionCounters::read() const {
    mysql::Reply reply = mysql::execute(client_, sql_, "counters of the test");
    Counters counters;
    while (reply.rows.next()) {
        counters.emplace(reply.rows.text(0), reply.rows.number<long>(1));
    }
    return counters;
}

bool waits_for_a_lock(Connection& look, unsigned long connection_id) {
    // Not from information_schema: that is a copy which stays as it is for as long as somebody reads it often.
    const auto status = look.rows("SHOW ENGINE INNODB STATUS");
    const std::string text = status.at(0).at(2).value_or("");
    const auto thread = text.find(fmt::format("thread id {},", connection_id), text.find("LIST OF TRANSACTIONS"));
    if (thread == std::string::npos) {
        return false;
    }
    const auto begin = text.rfind("---TRANSACTION", thread);
    return begin != std::string::npos && text.find("LOCK WAIT", begin) < thread;
}

Variables session_variables(Connection& db) {
    constexpr std::array<std::string_view, 8> kMoving{"timestamp",    "last_insert_id", "identity",
                                                      "insert_id",    "warning_count",  "error_count",
                                                      "statement_id", "in_transaction"};
    Variables variables;
    for (const Row& row : db.rows("SHOW SESSION VARIABLES")) {
        const std::string name = row[0].value_or("");
        const bool moves = name.find("gtid") != std::string::npos || name.starts_with("rand_seed") ||
                           std::find(kMoving.begin(), kMoving.end(), name) != kMoving.end();
        if (!moves) {
            variables.emplace(name, row[1].value_or(""));
        }
    }
    return variables;
}

std::vector<std::string> changed(const Variables& before, const Variables& after) {
    std::vector<std::string> differences;
    for (const auto& [name, value] : after) {
        const auto was = before.find(name);
        if (was == before.end() || was->second != value) {
            differences.push_back(fmt::format("{}: {} -> {}", name, was == before.end() ? "" : was->second, value));
        }
    }
    return differences;
}

}  // namespace commitq::test
