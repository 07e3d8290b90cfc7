#include "producer.h"

#include <commitq/error.h>
#include <commitq/interop/mysql.h>
#include <commitq/transaction.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>

#include "notification.h"

namespace shop {
namespace {

using namespace std::chrono_literals;
using examples::execute;

constexpr int kAttempts = 100;  ///< About as many seconds. A server may be away for a while.
constexpr double kRollbackShare = 0.03;
constexpr std::uint64_t kNotesOnFailures = 10;  ///< More would only scroll the first ones away.

/// The client library keeps something for each thread that used it.
struct ThreadEnd {
    ThreadEnd() { mysql_thread_init(); }
    ThreadEnd(const ThreadEnd&) = delete;
    ThreadEnd& operator=(const ThreadEnd&) = delete;
    ~ThreadEnd() { mysql_thread_end(); }
};

/// What to do about a failed attempt.
struct Failure {
    commitq::Repeat repeat;
    std::string message;
};

/// commitq's errors say what may be repeated.
Failure judge(const commitq::Error& error) { return {error.repeat(), error.what()}; }

/// The shop's own statements have to know the numbers.
Failure judge(const examples::SqlError& error) {
    using commitq::Repeat;
    switch (error.number()) {
        case 1205:  // lock wait timeout
        case 1213:  // deadlock
        case 1062:  // an attempt whose answer got lost was committed after all, after `is_placed` looked
            return {Repeat::transaction, error.what()};
        case 1040:  // too many connections
        case 1053:  // the server is shutting down
        case 1290:  // the server takes no writes
        case 3169:  // the session was killed
            return {Repeat::reconnect, error.what()};
        default:
            return {error.number() >= 2000 && error.number() < 3000 ? Repeat::reconnect : Repeat::never, error.what()};
    }
}

}  // namespace

void create_shop_tables(MYSQL* db) {
    execute(db,
            "CREATE TABLE IF NOT EXISTS shop_orders ("
            " run CHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
            " line BIGINT UNSIGNED NOT NULL,"
            " body LONGBLOB NOT NULL,"
            " PRIMARY KEY (run, line)) ENGINE=InnoDB");
}

void Producer::run(const std::stop_token& stop) {
    const ThreadEnd at_end;
    while (const std::optional<Order> order = counter_.orders.pop(stop)) {
        place(*order, stop);
    }
    db_.reset();
}

void Producer::place(const Order& order, const std::stop_token& stop) {
    Failure failure{commitq::Repeat::never, "the run was given up"};
    for (int i = 0; i < kAttempts && !stop.stop_requested(); ++i) {
        try {
            connect();
            if (i > 0 && is_placed(order)) {
                ++counter_.sales.placed;
                return;
            }
            if (i == 0 && wants_rollback(order)) {
                attempt(order, Ending::rollback);
            }
            attempt(order, Ending::commit);
            ++counter_.sales.placed;
            return;
        } catch (const commitq::Error& error) {
            failure = judge(error);
        } catch (const examples::SqlError& error) {
            failure = judge(error);
        } catch (const std::exception& error) {
            failure = {commitq::Repeat::never, error.what()};
        }
        db_.reset();  // rolls back whatever is still open
        if (failure.repeat == commitq::Repeat::never) {
            break;
        }
        std::this_thread::sleep_for(std::min(50ms * i, 1'000ms));
    }
    if (++counter_.sales.failed <= kNotesOnFailures) {
        counter_.console.note(fmt::format("the order of line {} could not be placed: {}", order.line, failure.message));
    }
}

// What the shop is about: the order and its notifications commit together, or neither does.
void Producer::attempt(const Order& order, Ending ending) {
    if (order.json.size() > max_order_) {
        throw std::runtime_error{fmt::format("it has {} bytes, and the server's max_allowed_packet has room for {}",
                                             order.json.size(), max_order_)};
    }
    MYSQL* const db = db_.get();
    const std::string payload = payload_of(order.line, order.json);
    std::vector<commitq::JobId> jobs;
    jobs.reserve(kNotifications.size());

    execute(db, "START TRANSACTION");
    execute(db, fmt::format("INSERT INTO shop_orders (run, line, body) VALUES ('{}', {}, {})", counter_.run, order.line,
                            commitq::sql_literal(order.json)));
    for (const std::string_view notification : kNotifications) {
        jobs.push_back(counter_.queue.enqueue(db, notification, payload));
    }
    if (ending == Ending::commit) {
        execute(db, "COMMIT");
        return;
    }

    execute(db, "ROLLBACK");
    ++counter_.sales.rolled_back;
    const std::scoped_lock lock{counter_.sales.mutex};
    counter_.sales.ghosts.insert(counter_.sales.ghosts.end(), jobs.begin(), jobs.end());
}

bool Producer::is_placed(const Order& order) {
    return examples::value(db_.get(), fmt::format("SELECT COUNT(*) FROM shop_orders WHERE run = '{}' AND line = {}",
                                                  counter_.run, order.line)) == "1";
}

bool Producer::wants_rollback(const Order& order) const {
    std::seed_seq seed{counter_.seed, counter_.seed >> 32U, order.line, order.line >> 32U};
    std::minstd_rand random{seed};
    return std::bernoulli_distribution{kRollbackShare}(random);
}

void Producer::connect() {
    if (!db_) {
        db_ = examples::connect(counter_.server);
        // As a literal an order takes twice its size. A server that is sent too much hangs up, instead of saying so.
        max_order_ = std::stoull(examples::value(db_.get(), "SELECT @@max_allowed_packet")) / 2 - 1'000;
    }
}

}  // namespace shop
