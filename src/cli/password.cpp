#include "password.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

namespace commitq::cli {
namespace {

/// A signal that would end the process while the terminal is silent.
volatile std::sig_atomic_t caught = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a handler's

extern "C" void note_signal(int number) { caught = number; }

/// Ends waiting for input instead of the process.
class SignalsNoted {
public:
    SignalsNoted() {
        struct sigaction note {};
        note.sa_handler = note_signal;
        sigset_t noted;
        sigemptyset(&noted);
        for (std::size_t i = 0; i < kNumbers.size(); ++i) {
            sigaddset(&noted, kNumbers.at(i));
            sigaction(kNumbers.at(i), &note, &before_.at(i));
        }
        sigprocmask(SIG_BLOCK, &noted, &mask_before_);  // they come in while waiting, not just before it
    }
    SignalsNoted(const SignalsNoted&) = delete;
    SignalsNoted& operator=(const SignalsNoted&) = delete;
    ~SignalsNoted() {
        for (std::size_t i = 0; i < kNumbers.size(); ++i) {
            sigaction(kNumbers.at(i), &before_.at(i), nullptr);
        }
        sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    }

    /// Waits for input. @returns false when a signal came instead.
    [[nodiscard]] bool wait_for(int descriptor) const {
        pollfd input{.fd = descriptor, .events = POLLIN, .revents = 0};
        return ppoll(&input, 1, nullptr, &mask_before_) == 1;
    }

private:
    static constexpr std::array kNumbers{SIGINT, SIGTERM, SIGQUIT, SIGHUP};
    std::array<struct sigaction, kNumbers.size()> before_{};
    sigset_t mask_before_{};
};

/// The process's terminal, whatever its standard input is. It doesn't echo.
class SilentTerminal {
public:
    SilentTerminal() : descriptor_{open("/dev/tty", O_RDWR | O_CLOEXEC)} {
        if (descriptor_ < 0 || tcgetattr(descriptor_, &before_) != 0) {
            throw PasswordError{"there is no terminal to ask for a password on"};
        }
        termios silent = before_;
        silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        tcsetattr(descriptor_, TCSAFLUSH, &silent);
    }
    SilentTerminal(const SilentTerminal&) = delete;
    SilentTerminal& operator=(const SilentTerminal&) = delete;
    ~SilentTerminal() {
        tcsetattr(descriptor_, TCSAFLUSH, &before_);
        close(descriptor_);
    }

    void write(std::string_view text) const {
        [[maybe_unused]] const auto written = ::write(descriptor_, text.data(), text.size());
    }
    /// A line, or what there is of it when a signal came.
    [[nodiscard]] std::string read_line(const SignalsNoted& signals) const {
        std::string line;
        for (char c = 0; signals.wait_for(descriptor_) && ::read(descriptor_, &c, 1) == 1 && c != '\n';) {
            line += c;
        }
        return line;
    }

private:
    int descriptor_;
    termios before_{};
};

}  // namespace

std::string read_password(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    std::string line;
    if (!file) {
        throw PasswordError{
            fmt::format("the password file {} can't be read: {}", path, std::generic_category().message(errno))};
    }
    std::getline(file, line);
    if (line.ends_with('\r')) {
        line.pop_back();
    }
    if (line.empty()) {
        throw PasswordError{fmt::format("the password file {} has an empty first line", path)};
    }
    return line;
}

std::string ask_password() {
    std::string password;
    {
        const SignalsNoted signals;
        const SilentTerminal terminal;
        terminal.write("Password: ");
        password = terminal.read_line(signals);
        terminal.write("\n");
    }
    if (caught != 0) {
        std::raise(caught);  // as if it came now, when the terminal is as it was
        throw PasswordError{"interrupted"};
    }
    return password;
}

void hide_urls(int argc, char** argv) {
    constexpr std::string_view kScheme = "mysql://";
    for (int i = 1; i < argc; ++i) {
        if (char* url = std::strstr(argv[i], kScheme.data())) {
            std::fill_n(url + kScheme.size(), std::strlen(url) - kScheme.size(), 'x');
        }
    }
}

}  // namespace commitq::cli
