// A TCP relay between the library and the server that can lose a reply.
#pragma once

#include <commitq/connect_options.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace commitq::test {

/// Passes bytes on in both directions until a statement with a certain text comes by: that one still reaches the server, but
/// from then on nothing that the server says comes back on that connection.
class ReplyLosingProxy {
public:
    /// @param server reached by TCP.
    explicit ReplyLosingProxy(const ConnectOptions& server);
    ReplyLosingProxy(const ReplyLosingProxy&) = delete;
    ReplyLosingProxy& operator=(const ReplyLosingProxy&) = delete;
    ~ReplyLosingProxy();

    /// As the server's, but through this proxy.
    [[nodiscard]] ConnectOptions options() const;
    /// Loses the replies to the next statement that contains @p text, on its connection. Takes one at a time.
    void lose_reply_to(std::string text);
    /// Whether it came by, and the server's reply to it was held back.
    [[nodiscard]] bool lost_one() const noexcept { return lost_; }
    /// Breaks all connections.
    void cut();

private:
    void accept_loop();
    void relay(int client, int server);
    bool is_unlucky(const std::string& statement);

    ConnectOptions server_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::mutex mutex_;
    std::string text_;
    std::vector<int> open_;
    std::vector<std::thread> relays_;
    std::atomic<bool> lost_{false};
    std::atomic<bool> ending_{false};
    std::thread acceptor_;
};

}  // namespace commitq::test
