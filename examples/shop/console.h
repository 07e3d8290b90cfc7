// What people see while the shop runs: a progress line and notes, on standard error.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace shop {

/// Threading: thread-safe.
class Console {
public:
    Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;
    ~Console() { end_progress(); }

    /// One line that stays.
    void note(std::string_view text);

    /// The latest progress: rewritten in place on a terminal, else a line every few seconds.
    void progress(std::string_view text);

    /// Leaves the last progress on the screen.
    void end_progress();

private:
    using Clock = std::chrono::steady_clock;

    const bool live_;
    std::mutex mutex_;
    std::string shown_;  ///< The live line that the cursor is on.
    Clock::time_point next_{};
};

}  // namespace shop
