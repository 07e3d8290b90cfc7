#include "console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace shop {
namespace {

/// Unlike fmt::print, doesn't mind if nobody can read it.
void write(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

using namespace std::chrono_literals;

Console::Console() : live_{isatty(STDERR_FILENO) != 0}, next_{Clock::now() + 1s} {}

void Console::note(std::string_view text) {
    const std::scoped_lock lock{mutex_};
    if (shown_.empty()) {
        write(fmt::format("{}\n", text));
    } else {
        write(fmt::format("\r\x1b[K{}\n{}", text, shown_));
    }
}

void Console::progress(std::string_view text) {
    const std::scoped_lock lock{mutex_};
    if (live_) {
        shown_ = text;
        write(fmt::format("\r\x1b[K{}", shown_));
    } else if (Clock::now() >= next_) {
        next_ = Clock::now() + 2s;
        write(fmt::format("{}\n", text));
    }
}

void Console::end_progress() {
    const std::scoped_lock lock{mutex_};
    if (!shown_.empty()) {
        write("\n");
        shown_.clear();
    }
}

}  // namespace shop
