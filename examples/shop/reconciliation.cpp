#include "reconciliation.h"

#include <commitq/transaction.h>
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "../support.h"
#include "notification.h"

namespace shop {
namespace {

using commitq::sql_literal;

struct Job {
    std::string type;
    bool completed;
};

std::uint64_t number(const std::optional<std::string>& text) {
    const std::string digits = text.value_or("0");
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

/// The jobs of this run, by id.
std::unordered_map<commitq::JobId, Job> read_jobs(MYSQL* db, std::string_view queue) {
    std::unordered_map<commitq::JobId, Job> jobs;
    const std::string sql = "SELECT id, type, state FROM commitq_jobs WHERE queue = " + sql_literal(queue);
    for (const commitq::Row& row : examples::query(db, sql)) {
        jobs.emplace(number(row[0]), Job{row[1].value(), row[2] == "completed"});
    }
    return jobs;
}

/// What a delivery for an order must look like.
struct Expected {
    std::uint64_t size;
    std::uint64_t checksum;
};

/// By the order's line; computed by the server from the order's row, not from anything that went through a queue.
std::unordered_map<std::uint64_t, Expected> read_orders(MYSQL* db, std::string_view run) {
    std::unordered_map<std::uint64_t, Expected> orders;
    const std::string payload = fmt::format("CONCAT({}, line, {}, body, {})", sql_literal(kPayloadStart),
                                            sql_literal(kPayloadMiddle), sql_literal(kPayloadEnd));
    const std::string sql =
        fmt::format("SELECT line, LENGTH({0}), CRC32({0}) FROM shop_orders WHERE run = {1}", payload, sql_literal(run));
    for (const commitq::Row& row : examples::query(db, sql)) {
        orders.emplace(number(row[0]), Expected{number(row[1]), number(row[2])});
    }
    return orders;
}

/// Counts what is wrong by kind, so that a thousand of a kind make one line.
class Problems {
public:
    void add_if(bool wrong, const std::string& kind) {
        if (wrong) {
            ++kinds_[kind];
        }
    }
    [[nodiscard]] std::vector<std::string> list() const {
        std::vector<std::string> lines;
        for (const auto& [kind, count] : kinds_) {
            lines.push_back(fmt::format("{} x {}", count, kind));
        }
        return lines;
    }

private:
    std::map<std::string, std::uint64_t> kinds_;
};

}  // namespace

Reconciliation reconcile(MYSQL* db, std::string_view run, std::string_view queue, const std::vector<Delivery>& log,
                         const std::vector<commitq::JobId>& ghosts) {
    const auto jobs = read_jobs(db, queue);
    const auto orders = read_orders(db, run);
    const std::unordered_set<commitq::JobId> rolled_back{ghosts.begin(), ghosts.end()};
    Reconciliation result{.orders = orders.size(), .jobs = jobs.size()};
    Problems problems;

    std::unordered_set<commitq::JobId> delivered;
    std::set<std::pair<std::uint64_t, std::string>> notified;  // (order, type)
    for (const Delivery& delivery : log) {
        problems.add_if(!delivered.insert(delivery.job).second, "a job is in the receiver's log twice");
        problems.add_if(!notified.emplace(delivery.line, delivery.type).second, "two jobs for the same notification");
        result.ghosts += rolled_back.contains(delivery.job) ? 1 : 0;
        const auto job = jobs.find(delivery.job);
        problems.add_if(job == jobs.end(), "a delivery of a job that does not exist");
        problems.add_if(job != jobs.end() && job->second.type != delivery.type, "a job delivered as another type");
        const auto order = orders.find(delivery.line);
        problems.add_if(order == orders.end(), "a delivery for an order that does not exist");
        problems.add_if(order != orders.end() &&
                            (order->second.size != delivery.size || order->second.checksum != delivery.checksum),
                        "a delivery that differs from its order");
    }
    for (const auto& [id, job] : jobs) {
        result.completed += job.completed ? 1 : 0;
        result.lost += delivered.contains(id) ? 0 : 1;
        problems.add_if(!job.completed, "a job that is not completed");
        problems.add_if(!delivered.contains(id), "a job that was never delivered");
    }
    problems.add_if(result.ghosts > 0, "deliveries of jobs that were rolled back");
    problems.add_if(result.jobs != result.orders * kNotifications.size(), "the jobs do not match the orders in number");
    result.delivered = delivered.size();
    result.problems = problems.list();
    return result;
}

}  // namespace shop
