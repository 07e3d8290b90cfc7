// One run of the shop, from the first order to the reconciliation.
#pragma once

#include <commitq/connect_options.h>
#include <commitq/observer.h>
#include <commitq/reaper.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../support.h"
#include "console.h"
#include "options.h"
#include "orders.h"
#include "producer.h"
#include "receiver.h"
#include "reconciliation.h"
#include "worker_pool.h"

namespace shop {

/// Counts the jobs that the reaper brings back.
struct Reaped : commitq::Observer {
    std::atomic<std::uint64_t> returned{0};
    void on_reaped(std::size_t count, std::size_t) noexcept override { returned += count; }
};

/// The input, as far as it has been read.
struct Intake {
    std::atomic<std::uint64_t> orders{0};
    std::atomic<std::uint64_t> skipped{0};
    std::atomic<bool> ended{false};
    std::string error{};  ///< Why it ended too early; read it once it has ended.
};

/// Threading: the main thread.
class Shop {
public:
    /// Connects and prepares the tables. @throws commitq::Error, examples::SqlError, std::system_error
    explicit Shop(const Options& options);

    /// Runs and reports; returns the exit code. @throws what the constructor throws, and std::runtime_error
    int run();

private:
    using Figures = std::array<std::uint64_t, 6>;  ///< All that moves while there is something to do.

    void open();
    void read_orders(const std::stop_token& stop);
    void watch();
    void give_up(std::string reason);
    void kill_a_worker();
    bool all_done();
    /// Throws when nothing has moved for too long, though there is something to do.
    void check_for_stall();
    void show_progress();
    int report();
    std::vector<std::string> problems_of_this_run() const;
    examples::Connection& database();

    const Options& options_;
    const std::string run_;
    const std::string queue_;
    Console console_;
    commitq::ConnectOptions server_;
    examples::Connection db_;
    OrderReader reader_;
    OrderBuffer orders_;
    Intake intake_;
    Sales sales_;
    Counter counter_;
    Receiver receiver_;
    WorkerPool workers_;
    std::shared_ptr<Reaped> reaped_ = std::make_shared<Reaped>();
    std::optional<commitq::Reaper> reaper_;
    std::optional<pid_t> killed_;
    int stopped_badly_ = 0;
    std::string gave_up_;           ///< Why; empty if it didn't.
    std::uint64_t unfinished_ = 0;  ///< Jobs that are neither completed nor given up, when last looked at.
    unsigned ticks_ = 0;
    Figures last_figures_{};
    std::chrono::steady_clock::time_point last_move_ = std::chrono::steady_clock::now();
    std::vector<std::jthread> producers_;
    std::jthread intake_thread_;
};

}  // namespace shop
