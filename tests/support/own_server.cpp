#include "support/own_server.h"

#include "support/database.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace commitq::test {
namespace {

constexpr const char* kInside = "COMMITQ_TEST_OWN_SERVER";

const char* variable(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-mt-unsafe)

std::string test_name() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return std::string{test->test_suite_name()} + "." + test->name();
}

std::string kind_of_this_server() {
    if (const char* kind = variable("COMMITQ_SERVER_KIND")) {
        return kind;
    }
    const std::string version = Connection{server_options()}.value("SELECT VERSION()");
    return version.find("MariaDB") == std::string::npos ? "mysql" : "mariadb";
}

/// Runs a program of PATH and waits for it. @returns its exit status, -1 if it did not end by itself.
int run(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
        return -1;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

bool on_own_server(const OwnServer& server) {
    const std::string test = test_name();
    if (const char* inside = variable(kInside); inside != nullptr && inside == test) {
        return true;
    }
    const char* with_server = variable("COMMITQ_WITH_SERVER");
    if (with_server == nullptr) {
        ADD_FAILURE() << "COMMITQ_WITH_SERVER is not set: run the tests with tests/run, or under tests/with-server";
        return false;
    }
    // The server must go when this process is killed, as ctest does at a timeout.
    std::vector<std::string> words{"setpriv", "--pdeathsig", "TERM", "--", "env", kInside + ("=" + test)};
    for (const auto& [name, value] : server.environment) {
        words.push_back(name + "=" + value);
    }
    words.insert(words.end(), {with_server, "--server", kind_of_this_server()});
    for (const std::string& option : server.options) {
        words.push_back("--mysqld-option=" + option);
    }
    words.insert(words.end(), {"--", std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_filter=" + test});
    EXPECT_EQ(run(std::move(words)), 0) << "the test failed on its own server";
    return false;
}

}  // namespace commitq::test
