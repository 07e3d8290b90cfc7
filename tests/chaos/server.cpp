#include "chaos/server.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace commitq::chaos {

using namespace std::chrono_literals;
using test::Connection;

Server::Server() {
    const char* folder = std::getenv("COMMITQ_SERVER_DIR");  // NOLINT(concurrency-mt-unsafe)
    if (folder == nullptr) {
        throw std::runtime_error{"the chaos kills its server: run it with tests/run chaos, without COMMITQ_TEST_URL"};
    }
    folder_ = folder;
    mariadb_ = connect().value("SELECT VERSION()").find("MariaDB") != std::string::npos;
    std::ofstream{folder_ + "/restart"} << "whenever it dies\n";
}

pid_t Server::pid() const {
    pid_t pid = 0;
    std::ifstream{folder_ + "/server.pid"} >> pid;
    return pid;
}

void Server::kill() {
    const pid_t before = pid();
    if (::kill(before, SIGKILL) != 0) {
        throw std::runtime_error{"the server could not be killed"};
    }
    if (!test::eventually([&] { return pid() != before; }, 120s)) {
        throw std::runtime_error{"the server was not started again"};
    }
    [[maybe_unused]] const Connection back = connect();
}

Connection Server::connect() const {
    std::optional<Connection> connection;
    const auto try_to = [&] {
        try {
            connection.emplace(test::server_options());
            return true;
        } catch (const std::runtime_error&) {
            return false;
        }
    };
    if (!test::eventually(try_to, 180s)) {
        throw std::runtime_error{"the server does not come back"};
    }
    return std::move(*connection);
}

void Server::set_read_only(bool on) const {
    connect().run(fmt::format("SET GLOBAL {}={}", mariadb_ ? "read_only" : "super_read_only", on ? 1 : 0));
    if (!on && !mariadb_) {
        connect().run("SET GLOBAL read_only=0");  // which super_read_only has switched on as well
    }
}

}  // namespace commitq::chaos
