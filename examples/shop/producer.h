// Places orders: each one with its notifications in one transaction.
#pragma once

#include <commitq/connect_options.h>
#include <commitq/queue.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../support.h"
#include "console.h"
#include "orders.h"

namespace shop {

/// What the producers have done so far.
struct Sales {
    std::atomic<std::uint64_t> placed{0};       ///< Orders that are committed.
    std::atomic<std::uint64_t> failed{0};       ///< Orders that could not be.
    std::atomic<std::uint64_t> rolled_back{0};  ///< Transactions rolled back on purpose.
    std::mutex mutex{};
    std::vector<commitq::JobId>
        ghosts{};  ///< The jobs that were enqueued in those, and so must never run. Under `mutex`.
};

/// What all producers share.
struct Counter {
    commitq::ConnectOptions server{};
    std::string run{};  ///< Names the run in `shop_orders`.
    commitq::Queue queue;
    std::uint64_t seed = 0;
    OrderBuffer& orders;
    Sales& sales;
    Console& console;
};

/// Makes the shop's own table, if it isn't there.
void create_shop_tables(MYSQL* db);

/// One producer. Threading: one thread.
class Producer {
public:
    explicit Producer(Counter& counter) : counter_{counter} {}

    /// Places orders until there are no more, or it is asked to stop.
    void run(const std::stop_token& stop);

private:
    enum class Ending { commit, rollback };

    void place(const Order& order, const std::stop_token& stop);
    /// One transaction.
    void attempt(const Order& order, Ending ending);
    /// True if @p order is already there: a COMMIT whose answer got lost.
    bool is_placed(const Order& order);
    [[nodiscard]] bool wants_rollback(const Order& order) const;
    void connect();

    Counter& counter_;
    examples::Connection db_;
    std::uint64_t max_order_ = 0;
};

}  // namespace shop
