// Worker processes for benchmarks: commitq-bench starts itself again as `commitq-bench worker DATABASE QUEUES`.
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "bench/bench.h"

extern char** environ;  // NOLINT: POSIX

namespace commitq::bench {

WorkerProcess::WorkerProcess(const Database& database, const std::string& queues) {
    int ends[2];
    if (pipe(ends) != 0) {
        throw std::runtime_error{"no pipe"};
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string self = "/proc/self/exe";
    std::string command = "worker";
    std::string schema = database.name();
    std::string names = queues;
    char* arguments[] = {self.data(), command.data(), schema.data(), names.data(), nullptr};
    const int failed = posix_spawn(&pid_, self.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
    if (failed != 0) {
        throw std::runtime_error{"no worker process could be started"};
    }
    if (line() != "ready") {
        throw std::runtime_error{"a worker process could not start"};
    }
}

WorkerProcess::~WorkerProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    close(output_);
}

std::string WorkerProcess::line() {
    for (;;) {
        if (const auto end = buffer_.find('\n'); end != std::string::npos) {
            std::string found = buffer_.substr(0, end);
            buffer_.erase(0, end + 1);
            return found;
        }
        char bytes[4096];
        const ssize_t count = read(output_, bytes, sizeof bytes);
        if (count <= 0) {
            return {};
        }
        buffer_.append(bytes, static_cast<std::size_t>(count));
    }
}

double WorkerProcess::rss_mb() const {
    std::ifstream status{fmt::format("/proc/{}/status", pid_)};
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) {
            return std::stod(line.substr(6)) / 1024;
        }
    }
    return 0;
}

double WorkerProcess::cpu_seconds() const {
    std::ifstream stat{fmt::format("/proc/{}/stat", pid_)};
    std::string text;
    std::getline(stat, text);
    std::istringstream fields{text.substr(text.rfind(')') + 2)};
    std::string field;
    for (int i = 0; i < 11; ++i) {
        fields >> field;
    }
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int run_worker_process(const std::string& database, const std::string& queues) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, nullptr);

    ConnectOptions connection = test::server_options();
    connection.database = database;
    WorkerOptions options = drain_worker();
    options.reaper = true;
    options.queues.clear();
    std::istringstream names{queues};
    for (std::string name; std::getline(names, name, ',');) {
        options.queues.push_back(name);
    }
    Worker worker{connection, options};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    worker.on("stamp", [](JobContext&) {
        fmt::print("{}\n", std::chrono::steady_clock::now().time_since_epoch().count());
        std::fflush(stdout);
        return Outcome::done();
    });
    worker.start();
    fmt::print("ready\n");
    std::fflush(stdout);
    int signal = 0;
    sigwait(&signals, &signal);
    worker.stop(std::chrono::seconds{5});
    return 0;
}

}  // namespace commitq::bench
