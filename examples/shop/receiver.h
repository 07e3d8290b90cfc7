// The other side of a delivery: the mail service, the warehouse.
//
// A worker may deliver a notification and be killed before it could complete the job; then the job is delivered again. So
// the receiver knows the jobs that it has seen, and does nothing for a repeated one but count it. It lives in the shop's
// main process and outlasts the workers; it answers only once a delivery is in its log.
#pragma once

#include <commitq/queue.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "wire.h"

namespace shop {

/// One line of the log.
struct Delivery {
    commitq::JobId job = 0;
    std::string type{};
    std::uint64_t line = 0;      ///< The order.
    std::uint64_t size = 0;      ///< Of the payload.
    std::uint32_t checksum = 0;  ///< Of the payload.
};

/// The file that deliveries are appended to. Threading: one thread at a time.
class DeliveryLog {
public:
    /// A new file at @p path; if that is empty, one without a name. @throws std::system_error
    explicit DeliveryLog(const std::string& path);

    /// Appends a line; false when it can't be written.
    bool append(const Delivery& delivery);
    /// All of it, from the file. @throws std::runtime_error
    [[nodiscard]] std::vector<Delivery> read() const;

private:
    File file_;
};

/// Threading: thread-safe, but `connect` belongs to one thread.
class Receiver {
public:
    explicit Receiver(const std::string& log_path) : log_{log_path} {}
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;
    /// Hangs up.
    ~Receiver();

    /// One more worker's connection, and its number.
    struct Line {
        int number;
        File worker_end;
    };
    /// @throws std::system_error
    Line connect();

    /// From the @p count-th delivery on, takes one more and never answers it: whoever delivered it can't complete it.
    void keep_waiting_after(std::uint64_t count);
    /// The connection that waits for that answer.
    [[nodiscard]] std::optional<int> kept_waiting() const;

    [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }
    [[nodiscard]] std::uint64_t duplicates() const noexcept { return duplicates_; }
    [[nodiscard]] bool broken() const noexcept { return broken_; }
    [[nodiscard]] std::vector<Delivery> log() const;

private:
    struct Connection {
        File socket;
        std::thread thread;
    };
    void serve(int number, int socket);
    Receipt take(const Delivery& delivery);
    /// True for the one delivery that stays unanswered.
    bool keeps_waiting(int number);

    std::list<Connection> connections_;
    mutable std::mutex mutex_;
    DeliveryLog log_;
    std::unordered_set<commitq::JobId> seen_;
    std::optional<std::uint64_t> keep_waiting_after_;
    std::optional<int> kept_waiting_;
    std::atomic<std::uint64_t> delivered_{0};
    std::atomic<std::uint64_t> duplicates_{0};
    std::atomic<bool> broken_{false};
};

}  // namespace shop
