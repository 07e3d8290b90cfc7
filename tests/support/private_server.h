// A server for one test: to change its settings for all sessions, to freeze it, to read its counters undisturbed.
#pragma once

#include "support/child.h"

#include <commitq/connect_options.h>

#include <string>
#include <vector>

namespace commitq::test {

/// Whether private servers are MariaDB, for options that only one of the two knows.
bool private_servers_are_mariadb();

/// A fresh server of the same kind as that of COMMITQ_URL, with options of its own; gone at the end.
class PrivateServer {
public:
    explicit PrivateServer(const std::vector<std::string>& mysqld_options = {});
    PrivateServer(const PrivateServer&) = delete;
    PrivateServer& operator=(const PrivateServer&) = delete;
    ~PrivateServer();

    [[nodiscard]] const ConnectOptions& options() const noexcept { return options_; }
    /// Stops the process, so that it answers nobody.
    void freeze() const;
    void thaw() const;

private:
    Child keeper_;
    ConnectOptions options_{};
    pid_t pid_ = 0;
};

}  // namespace commitq::test
