// Threads that are waited for with a limit, and left behind when they don't end.
#pragma once

#include <core/clock.h>
#include <core/mutex.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace commitq::core {

/// Threads of one owner, with all signals blocked. What a thread touches must be shared with it, so that one left
/// behind harms nobody. Threading: one thread at a time.
class ThreadPack {
public:
    ThreadPack();
    ThreadPack(const ThreadPack&) = delete;
    ThreadPack& operator=(const ThreadPack&) = delete;
    /// Leaves behind what still runs.
    ~ThreadPack();

    /// Starts @p body, which must not throw. @p name, up to 15 characters, is what debuggers show.
    /// Throws std::system_error when the system has no more threads.
    void spawn(const std::string& name, std::function<void()> body);

    /// Waits until all have ended. @returns false when the time came first.
    bool wait_until(Clock::time_point time);

private:
    struct Count {
        Mutex mutex;
        std::condition_variable changed;
        std::size_t running GUARDED_BY(mutex) = 0;
    };
    std::shared_ptr<Count> count_;
    std::vector<std::thread> threads_;
};

}  // namespace commitq::core
