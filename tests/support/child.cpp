#include "support/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <map>
#include <ostream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace commitq::test {
namespace {

constexpr std::string_view kAsChild = "--as-child";

using Roles = std::map<std::string, int (*)(const ChildArguments&), std::less<>>;

Roles& roles() {
    static Roles all;
    return all;
}

std::string own_path() {
    std::array<char, 4096> path{};
    if (readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) {
        throw std::runtime_error{"readlink of /proc/self/exe failed"};
    }
    return path.data();
}

void check(int result, const char* what) {
    if (result != 0) {
        throw std::runtime_error{fmt::format("{} failed: error {}", what, result)};
    }
}

}  // namespace

ChildRole::ChildRole(std::string_view name, int (*run)(const ChildArguments&)) { roles().emplace(name, run); }

std::ostream& operator<<(std::ostream& out, const Ended& ended) {
    return ended.signal != 0 ? out << "ended by signal " << ended.signal : out << "exit code " << ended.exit_code;
}

std::vector<std::string> child_command(std::string_view role, const ChildArguments& arguments) {
    std::vector<std::string> command{own_path(), std::string{kAsChild}, std::string{role}};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

Child::Child(std::string_view role, const ChildArguments& arguments) { start(child_command(role, arguments)); }

Child::Child(const std::vector<std::string>& command) { start(command); }

void Child::start(std::vector<std::string> command) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) {
        throw std::runtime_error{"no pipe"};
    }
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);  // above all, this process's connections
    std::vector<char*> arguments;
    for (std::string& argument : command) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    const int result = posix_spawn(&pid_, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    output_ = out[0];
    check(result, "posix_spawn");
}

Child::~Child() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    close_input();
    close(output_);
}

void Child::signal(int number) const { check(kill(pid_, number), "kill"); }

void Child::close_input() {
    if (input_ >= 0) {
        close(input_);
        input_ = -1;
    }
}

std::string Child::read_line() {
    for (;;) {
        if (const auto end = unread_.find('\n'); end != std::string::npos) {
            std::string line = unread_.substr(0, end);
            unread_.erase(0, end + 1);
            return line;
        }
        if (!read_more()) {
            return std::exchange(unread_, {});
        }
    }
}

std::string Child::read_all() {
    while (read_more()) {
    }
    return std::exchange(unread_, {});
}

bool Child::read_more() {
    std::array<char, 4096> bytes{};
    for (;;) {
        const auto count = read(output_, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count > 0) {
            unread_.append(bytes.data(), static_cast<std::size_t>(count));
        }
        return count > 0;
    }
}

std::optional<Ended> Child::poll() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == 0) {
        return std::nullopt;
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? Ended::by(WTERMSIG(status)) : Ended::with(WEXITSTATUS(status));
}

Ended Child::wait(std::chrono::seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        if (const auto ended = poll()) {
            return *ended;
        }
        if (std::chrono::steady_clock::now() > end) {
            throw std::runtime_error{"the child process does not end"};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

std::string url_of(const ConnectOptions& options) {
    return fmt::format("mysql://{}:{}@{}:{}/{}{}{}", options.user, options.password, options.host, options.port,
                       options.database, options.socket.empty() ? "" : "?socket=", options.socket);
}

std::optional<int> run_as_child(int argc, char** argv) {
    if (argc < 3 || argv[1] != kAsChild) {
        return std::nullopt;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        const auto role = roles().find(std::string_view{argv[2]});
        if (role == roles().end()) {
            throw std::runtime_error{"there is no such role"};
        }
        return role->second({argv + 3, argv + argc});
    } catch (const std::exception& error) {
        fmt::print(stderr, "child {}: {}\n", argv[2], error.what());
        return 99;
    }
}

}  // namespace commitq::test
