#include "support/private_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace commitq::test {
namespace {

const char* variable(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
}

/// Runs under tests/with-server: says where the server is, and holds it until standard input ends.
int hold_server(const ChildArguments&) {
    fmt::print("{}\n{}\n", variable("COMMITQ_URL"), variable("COMMITQ_SERVER_PID"));
    std::fflush(stdout);
    std::array<char, 64> bytes{};
    while (read(STDIN_FILENO, bytes.data(), bytes.size()) > 0) {
    }
    return 0;
}

const ChildRole kHoldServer{"hold_server", hold_server};

std::vector<std::string> command(const std::vector<std::string>& mysqld_options) {
    const std::string script = variable("COMMITQ_WITH_SERVER");
    if (script.empty()) {
        throw std::runtime_error{"COMMITQ_WITH_SERVER is not set: run the tests with tests/run or tests/with-server"};
    }
    const std::string kind = variable("COMMITQ_SERVER_KIND");
    std::vector<std::string> words{script, "--server", kind.empty() ? "mysql" : kind};
    for (const std::string& option : mysqld_options) {
        words.insert(words.end(), {"--mysqld-option", option});
    }
    words.push_back("--");
    const std::vector<std::string> hold = child_command("hold_server", {});
    words.insert(words.end(), hold.begin(), hold.end());
    return words;
}

}  // namespace

bool private_servers_are_mariadb() { return variable("COMMITQ_SERVER_KIND") == std::string_view{"mariadb"}; }

PrivateServer::PrivateServer(const std::vector<std::string>& mysqld_options) : keeper_{command(mysqld_options)} {
    const std::string url = keeper_.read_line();
    const std::string pid = keeper_.read_line();
    if (url.empty() || pid.empty()) {
        throw std::runtime_error{"the private server did not start"};
    }
    options_ = ConnectOptions::from_url(url);
    pid_ = static_cast<pid_t>(std::stoi(pid));
}

PrivateServer::~PrivateServer() {
    thaw();
    keeper_.close_input();
    try {
        keeper_.wait();
    } catch (...) {  // killed by the destructor of the child
    }
}

void PrivateServer::freeze() const { kill(pid_, SIGSTOP); }
void PrivateServer::thaw() const { kill(pid_, SIGCONT); }

}  // namespace commitq::test
