// The private server of tests/with-server, which can be killed here: it comes back.
#pragma once

#include "support/database.h"

#include <string>

namespace commitq::chaos {

class Server {
public:
    /// Throws when COMMITQ_URL is no private server.
    Server();
    /// SIGKILL, and waits until it is back.
    void kill();
    /// Waits until a connection can be made.
    [[nodiscard]] test::Connection connect() const;
    /// The server takes no writes of ordinary accounts.
    void set_read_only(bool on) const;

private:
    [[nodiscard]] pid_t pid() const;

    std::string folder_;
    bool mariadb_ = false;
};

}  // namespace commitq::chaos
