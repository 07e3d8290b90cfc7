#include "support/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace commitq::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int new_socket() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

const sockaddr* plain(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }  // NOLINT

bool send_all(int fd, const char* bytes, std::size_t count) {
    while (count > 0) {
        const auto sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        count -= static_cast<std::size_t>(sent);
    }
    return true;
}

}  // namespace

ReplyLosingProxy::ReplyLosingProxy(const ConnectOptions& server) : server_{server}, listener_{new_socket()} {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (bind(listener_, plain(address), size) != 0 || listen(listener_, 16) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {  // NOLINT
        throw std::runtime_error{"the proxy can't listen"};
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread{[this] { accept_loop(); }};
}

ReplyLosingProxy::~ReplyLosingProxy() {
    ending_ = true;
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    cut();
    for (std::thread& thread : relays_) {
        thread.join();
    }
    close(listener_);
}

ConnectOptions ReplyLosingProxy::options() const {
    ConnectOptions options = server_;
    options.socket.clear();
    options.host = "127.0.0.1";
    options.port = port_;
    options.tls = TlsMode::off;  // the proxy reads along
    return options;
}

void ReplyLosingProxy::lose_reply_to(std::string text) {
    const std::scoped_lock lock{mutex_};
    lost_ = false;
    text_ = std::move(text);
}

void ReplyLosingProxy::cut() {
    const std::scoped_lock lock{mutex_};
    for (const int fd : open_) {
        shutdown(fd, SHUT_RDWR);
    }
}

void ReplyLosingProxy::accept_loop() {
    for (;;) {
        const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) {
            return;
        }
        const int on = 1;
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const int server = new_socket();
        const sockaddr_in address = loopback(server_.port);
        if (connect(server, plain(address), sizeof address) != 0) {
            close(client);
            close(server);
            continue;
        }
        const std::scoped_lock lock{mutex_};
        open_.insert(open_.end(), {client, server});
        relays_.emplace_back([this, client, server] { relay(client, server); });
    }
}

bool ReplyLosingProxy::is_unlucky(const std::string& statement) {
    const std::scoped_lock lock{mutex_};
    if (text_.empty() || statement.find(text_) == std::string::npos) {
        return false;
    }
    text_.clear();
    return true;
}

void ReplyLosingProxy::relay(int client, int server) {
    std::array<pollfd, 2> both{pollfd{.fd = client, .events = POLLIN, .revents = 0},
                               pollfd{.fd = server, .events = POLLIN, .revents = 0}};
    std::array<char, 65536> bytes{};
    std::string statement;  // what the client sent since the last reply
    bool losing = false;
    for (bool alive = true; alive && poll(both.data(), both.size(), -1) >= 0;) {
        for (const pollfd& ready : both) {
            if (ready.revents == 0) {
                continue;
            }
            const auto count = recv(ready.fd, bytes.data(), bytes.size(), 0);
            if (count <= 0) {
                alive = false;
                break;
            }
            const auto size = static_cast<std::size_t>(count);
            if (ready.fd == client) {
                statement.append(bytes.data(), size);
                losing = losing || is_unlucky(statement);
                alive = send_all(server, bytes.data(), size);
            } else if (losing) {
                lost_ = true;
            } else {
                statement.clear();
                alive = send_all(client, bytes.data(), size);
            }
        }
    }
    const std::scoped_lock lock{mutex_};
    std::erase(open_, client);
    std::erase(open_, server);
    close(client);
    close(server);
}

}  // namespace commitq::test
