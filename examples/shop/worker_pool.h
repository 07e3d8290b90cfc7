// The worker processes, as the shop's main process sees them: starts them, replaces those that die, stops them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "console.h"
#include "receiver.h"

namespace shop {

/// Threading: the main thread only; workers end with the thread that started them.
class WorkerPool {
public:
    WorkerPool(std::string queue, Receiver& receiver, Console& console)
        : queue_{std::move(queue)}, receiver_{receiver}, console_{console} {}
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;
    /// Kills those that are left.
    ~WorkerPool();

    /// Starts @p count worker processes. @throws std::system_error
    void start(int count);

    /// SIGKILL for the worker at the receiver's connection @p connection; returns its process id, if it is still there.
    std::optional<pid_t> kill_worker(int connection);

    /// Puts a new worker in the place of each that was killed, whoever did it.
    /// @throws std::runtime_error when one has ended by itself; it has said why, unless it crashed.
    void replace_dead();

    /// SIGTERM, and SIGKILL for what doesn't end in time. Returns how many did not stop in good order.
    int stop(std::chrono::milliseconds deadline);

    [[nodiscard]] std::size_t size() const noexcept { return workers_.size(); }

private:
    struct Process {
        pid_t pid;
        int connection;
    };
    void start_one();

    std::string queue_;
    Receiver& receiver_;
    Console& console_;
    std::vector<Process> workers_;
};

}  // namespace shop
