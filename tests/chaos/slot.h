// A place for a process that is started again whenever it ends.
#pragma once

#include "support/child.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace commitq::chaos {

/// Thread-safe, but `tend` is for one thread, which outlives the processes: they die with the thread that started them.
class Slot {
public:
    /// @param role of the child; @p name for messages; @p arguments before the number of the start.
    Slot(std::string role, std::string name, test::ChildArguments arguments, bool dies_by_itself);

    /// Starts the process if it is time to, notes its end and what it printed.
    void tend();
    /// No process is started any more.
    void close();
    /// Whether there is no process.
    bool ended();

    /// @returns false when there is no process that could be: it has just ended, or was told to.
    bool kill();
    /// Tells it to end by itself, with that signal or by the end of its standard input (0).
    bool stop(int signal);
    /// SIGSTOP, then SIGCONT after @p lasts. @p tell: after the SIGCONT, and from when.
    bool freeze(std::chrono::milliseconds lasts,
                const std::function<void(std::chrono::system_clock::time_point since)>& tell);

    /// Lines of `violation: `, and ends that nobody caused.
    std::vector<std::string> violations();
    /// How often it killed itself.
    int deaths();

private:
    enum class State { none, running, frozen, stopping, killed };
    void note_end(test::Ended ended);

    const std::string role_;
    const std::string name_;
    const test::ChildArguments arguments_;
    const bool dies_by_itself_;

    std::mutex mutex_{};
    State state_ = State::none;
    std::unique_ptr<test::Child> child_{};
    int starts_ = 0;
    bool closed_ = false;
    std::chrono::steady_clock::time_point since_{};  ///< Of the state.
    std::vector<std::string> violations_{};
    int deaths_ = 0;
};

}  // namespace commitq::chaos
