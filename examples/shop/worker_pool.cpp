#include "worker_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "timing.h"
#include "wire.h"

namespace shop {
namespace {

/// Starts this program again, with @p socket as its descriptor 3 and nothing to read. It inherits the environment, which
/// holds the URL: unlike arguments, that is nobody else's to see.
pid_t spawn_self(std::vector<std::string> arguments, int socket) {
    std::vector<char*> argv(arguments.size() + 1);  // ends with a null pointer
    std::transform(arguments.begin(), arguments.end(), argv.begin(), [](std::string& text) { return text.data(); });

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, socket, kReceiverSocket);
    // By its name: under valgrind the link itself leads to valgrind.
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    pid_t pid = 0;
    const int error = posix_spawn(&pid, program.c_str(), &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
        throw std::system_error{error, std::generic_category(), "cannot start a worker process"};
    }
    return pid;
}

/// True when @p pid has ended, with its status.
bool has_ended(pid_t pid, int& status) { return waitpid(pid, &status, WNOHANG) == pid; }

/// True if somebody wanted it to end: it didn't crash.
bool was_killed(int status) {
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
}

/// SIGTERM ends a worker at once only before it has begun.
bool in_good_order(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) == EXIT_SUCCESS : WTERMSIG(status) == SIGTERM;
}

}  // namespace

WorkerPool::~WorkerPool() {
    for (const Process& worker : workers_) {
        kill(worker.pid, SIGKILL);
        waitpid(worker.pid, nullptr, 0);
    }
}

void WorkerPool::start(int count) {
    for (int i = 0; i < count; ++i) {
        start_one();
    }
}

void WorkerPool::start_one() {
    const Receiver::Line line = receiver_.connect();
    const pid_t pid = spawn_self({"shop", "--worker", "--queue", queue_, "--parent", std::to_string(getpid())},
                                 line.worker_end.get());
    workers_.push_back({pid, line.number});
}

std::optional<pid_t> WorkerPool::kill_worker(int connection) {
    for (const Process& worker : workers_) {
        if (worker.connection == connection) {
            kill(worker.pid, SIGKILL);
            return worker.pid;
        }
    }
    return std::nullopt;
}

void WorkerPool::replace_dead() {
    std::size_t dead = 0;
    std::erase_if(workers_, [&](const Process& worker) {
        int status = 0;
        if (!has_ended(worker.pid, status)) {
            return false;
        }
        if (!was_killed(status)) {
            throw std::runtime_error{WIFSIGNALED(status)
                                         ? fmt::format("worker {} has crashed: signal {}", worker.pid, WTERMSIG(status))
                                         : fmt::format("worker {} has given up", worker.pid)};
        }
        console_.note(
            fmt::format("worker {} was ended by signal {}; another takes its place", worker.pid, WTERMSIG(status)));
        ++dead;
        return true;
    });
    for (; dead > 0; --dead) {
        start_one();
    }
}

int WorkerPool::stop(std::chrono::milliseconds deadline) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    int failed = 0;
    const auto ended = [&](const Process& worker) {
        int status = 0;
        const bool gone = has_ended(worker.pid, status);
        failed += gone && !in_good_order(status) ? 1 : 0;
        return gone;
    };
    for (const Process& worker : workers_) {
        kill(worker.pid, SIGTERM);
    }
    while (std::erase_if(workers_, ended), !workers_.empty() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(kTick / 10);
    }
    return failed + static_cast<int>(workers_.size());
}

}  // namespace shop
