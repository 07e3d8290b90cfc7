// Tests that need a server with settings of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace commitq::test {

/// What is special about the server.
struct OwnServer {
    std::vector<std::string> options{};                               ///< Such as `--max-allowed-packet=1M`.
    std::vector<std::pair<std::string, std::string>> environment{};  ///< Such as `TZ`; the test's process has it too.
};

/// Runs the current test a second time, in a process and on a private server of its own, of the same kind as this one:
///
///     if (!on_own_server({.options = {"--max-allowed-packet=1M"}})) return;
///     ... // the test, on that server
///
/// @returns true in that process. Elsewhere waits for it, fails the test unless it passed, and returns false.
[[nodiscard]] bool on_own_server(const OwnServer& server);

}  // namespace commitq::test
