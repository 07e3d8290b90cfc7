#include "chaos/slot.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <csignal>
#include <thread>
#include <utility>

namespace commitq::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kRestart = 200ms;
constexpr auto kLongestStop = 90s;  // far above every deadline given to `stop`

std::string describe(test::Ended ended) {
    return ended.signal != 0 ? fmt::format("ended by signal {}", ended.signal)
                             : fmt::format("ended with exit code {}", ended.exit_code);
}

}  // namespace

Slot::Slot(std::string role, std::string name, test::ChildArguments arguments, bool dies_by_itself)
    : role_{std::move(role)},
      name_{std::move(name)},
      arguments_{std::move(arguments)},
      dies_by_itself_{dies_by_itself} {}

void Slot::tend() {
    const std::scoped_lock lock{mutex_};
    if (state_ == State::none) {
        if (!closed_ && steady_clock::now() - since_ >= kRestart) {
            test::ChildArguments arguments = arguments_;
            arguments.push_back(std::to_string(++starts_));
            child_ = std::make_unique<test::Child>(role_, arguments);
            state_ = State::running;
        }
        return;
    }
    if (const auto ended = child_->poll()) {
        note_end(*ended);
    } else if (state_ == State::stopping && steady_clock::now() - since_ > kLongestStop) {
        violations_.push_back(fmt::format("{} does not stop", name_));
        child_->signal(SIGKILL);
        state_ = State::killed;
    }
}

void Slot::note_end(test::Ended ended) {
    for (std::string line = child_->read_line(); !line.empty(); line = child_->read_line()) {
        violations_.push_back(fmt::format("{}, start {}: {}", name_, starts_, line));
    }
    const bool killed = ended == test::Ended::by(SIGKILL);
    const bool wanted = state_ == State::stopping && ended == test::Ended::with(0);
    if (killed && state_ != State::killed && dies_by_itself_) {
        ++deaths_;
    } else if (!wanted && !(killed && state_ == State::killed)) {
        violations_.push_back(fmt::format("{}, start {}: {}", name_, starts_, describe(ended)));
    }
    child_.reset();
    state_ = State::none;
    since_ = steady_clock::now();
}

void Slot::close() {
    const std::scoped_lock lock{mutex_};
    closed_ = true;
}

bool Slot::ended() {
    const std::scoped_lock lock{mutex_};
    return state_ == State::none;
}

bool Slot::kill() {
    const std::scoped_lock lock{mutex_};
    if (state_ != State::running && state_ != State::frozen) {
        return false;
    }
    child_->signal(SIGKILL);
    state_ = State::killed;
    return true;
}

bool Slot::stop(int signal) {
    const std::scoped_lock lock{mutex_};
    if (state_ != State::running) {
        return false;
    }
    if (signal == 0) {
        child_->close_input();
    } else {
        child_->signal(signal);
    }
    state_ = State::stopping;
    since_ = steady_clock::now();
    return true;
}

bool Slot::freeze(std::chrono::milliseconds lasts,
                  const std::function<void(std::chrono::system_clock::time_point)>& tell) {
    const auto since = std::chrono::system_clock::now();
    int start = 0;
    {
        const std::scoped_lock lock{mutex_};
        if (state_ != State::running) {
            return false;
        }
        child_->signal(SIGSTOP);
        state_ = State::frozen;
        start = starts_;
    }
    std::this_thread::sleep_for(lasts);
    const std::scoped_lock lock{mutex_};
    if (state_ == State::frozen && start == starts_) {
        child_->signal(SIGCONT);
        state_ = State::running;
    }
    tell(since);
    return true;
}

std::vector<std::string> Slot::violations() {
    const std::scoped_lock lock{mutex_};
    return violations_;
}

int Slot::deaths() {
    const std::scoped_lock lock{mutex_};
    return deaths_;
}

}  // namespace commitq::chaos
