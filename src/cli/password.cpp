#include "password.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
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

/// Holds back the signals that would end the process while the terminal is silent; they come at the end.
class SignalsHeld {
public:
    SignalsHeld() {
        sigset_t held;
        sigemptyset(&held);
        for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
            sigaddset(&held, number);
        }
        sigprocmask(SIG_BLOCK, &held, &before_);
        descriptor_ = signalfd(-1, &held, SFD_CLOEXEC);
    }
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
    ~SignalsHeld() {
        close(descriptor_);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }

    /// Waits for input. Throws PasswordError when a signal comes.
    void wait_for(int input) const {
        std::array<pollfd, 2> either{
            {{.fd = input, .events = POLLIN, .revents = 0}, {.fd = descriptor_, .events = POLLIN, .revents = 0}}};
        if (poll(either.data(), either.size(), -1) < 0 || either[1].revents != 0) {
            throw PasswordError{"interrupted"};
        }
    }

private:
    int descriptor_ = -1;
    sigset_t before_{};
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
    [[nodiscard]] std::string read_line(const SignalsHeld& signals) const {
        std::string line;
        for (char c = 0;; line += c) {
            signals.wait_for(descriptor_);
            if (::read(descriptor_, &c, 1) != 1 || c == '\n') {
                return line;
            }
        }
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
    const SignalsHeld signals;
    const SilentTerminal terminal;
    terminal.write("Password: ");
    std::string password = terminal.read_line(signals);
    terminal.write("\n");
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
