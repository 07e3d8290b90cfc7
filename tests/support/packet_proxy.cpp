#include "support/packet_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace commitq::test {
namespace {

sockaddr_in local_address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

const sockaddr* plain(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
}

int new_socket() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        throw std::runtime_error{"the proxy gets no socket"};
    }
    return fd;
}

/// Each packet is sent by itself: none must wait for the other side to acknowledge the one before.
void send_at_once(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool receive(int fd, std::string& bytes) {
    std::array<char, 65536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
    const auto got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) {
        return false;
    }
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
}

bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

constexpr std::size_t kHeader = 4;  // three bytes of length, one of sequence

/// The length of the packet at the front of @p bytes with its header; 0 if it isn't all there.
std::size_t whole_packet(std::string_view bytes) {
    if (bytes.size() < kHeader) {
        return 0;
    }
    const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])); };
    const std::size_t length = kHeader + byte(0) + (byte(1) << 8U) + (byte(2) << 16U);
    return bytes.size() < length ? 0 : length;
}

}  // namespace

/// A client's connection and the one to the server behind it.
class PacketProxy::Pair {
public:
    Pair(int client, int server, const PacketProxy& proxy)
        : client_{client},
          server_{server},
          up_{[this, &proxy] { pump(client_, server_, proxy.requests_); }},
          down_{[this, &proxy] { pump(server_, client_, proxy.replies_); }} {}
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;
    ~Pair() {
        cut();
        up_.join();
        down_.join();
        close(client_);
        close(server_);
    }

    /// Whether nothing more is forwarded, either way.
    [[nodiscard]] bool ended() const { return ended_ == 2; }

private:
    void cut() const {
        shutdown(client_, SHUT_RDWR);
        shutdown(server_, SHUT_RDWR);
    }

    /// Forwards packets one way until that way ends.
    void pump(int from, int to, const Watch& watch) {
        std::string bytes;
        bool open = true;
        while (open && receive(from, bytes)) {
            while (const std::size_t length = open ? whole_packet(bytes) : 0) {
                open = forward(bytes.substr(0, length), from, to, watch);
                bytes.erase(0, length);
            }
        }
        if (open && !cut_off_) {
            cut();  // the one side has closed its connection
        }
        ++ended_;
    }

    /// @returns false when no more is to be forwarded this way.
    bool forward(std::string packet, int from, int to, const Watch& watch) {
        const bool is_reply = from == server_;
        if (is_reply && deaf_) {  // the reply is read all the same: the server has done what it says
            cut();
            return false;
        }
        std::string body = packet.substr(kHeader);
        switch (watch ? watch(body) : Passage::pass) {
            case Passage::lose:
                cut();
                return false;
            case Passage::half_close:
                shutdown(to, SHUT_WR);
                return false;
            case Passage::hold:
                std::this_thread::sleep_for(kHold);
                break;
            case Passage::lose_answer:
                deaf_ = true;
                break;
            case Passage::mute:
                muted_ = true;
                break;
            case Passage::cut_off:
                cut_off_ = true;
                break;
            case Passage::pass:
                break;
        }
        if (cut_off_ || (is_reply && muted_)) {
            return true;
        }
        if (!send_all(to, packet.replace(kHeader, body.size(), body))) {
            cut();
            return false;
        }
        return true;
    }

    int client_;
    int server_;
    std::atomic<bool> deaf_{false};
    std::atomic<bool> muted_{false};
    std::atomic<bool> cut_off_{false};
    std::atomic<int> ended_{0};
    std::thread up_;
    std::thread down_;
};

PacketProxy::PacketProxy(const ConnectOptions& server, Watch requests, Watch replies)
    : server_{server}, requests_{std::move(requests)}, replies_{std::move(replies)}, listener_{new_socket()} {
    sockaddr_in address = local_address(0);
    socklen_t length = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    if (bind(listener_, raw, length) != 0 || listen(listener_, 128) != 0 || getsockname(listener_, raw, &length) != 0) {
        close(listener_);
        throw std::runtime_error{"the proxy can't listen"};
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread{[this] { accept_all(); }};
}

PacketProxy::~PacketProxy() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
}

ConnectOptions PacketProxy::options() const {
    ConnectOptions options = server_;
    options.host = "127.0.0.1";
    options.port = port_;
    options.socket.clear();
    options.tls = TlsMode::off;
    return options;
}

void PacketProxy::accept_all() {
    for (;;) {
        const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (client >= 0) {
            std::erase_if(pairs_, [](const auto& pair) { return pair->ended(); });
            ++connections_;
            forward(client);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            pairs_.clear();
            return;
        }
    }
}

void PacketProxy::forward(int client) {
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = local_address(server_.port);
    if (server < 0 || connect(server, plain(address), sizeof address) != 0) {
        close(server);
        close(client);
        return;
    }
    send_at_once(client);
    send_at_once(server);
    pairs_.push_back(std::make_unique<Pair>(client, server, *this));
}

void replace_words(std::string& packet, std::string_view what, std::string_view with) {
    std::string filled{with};
    filled.resize(what.size(), ' ');
    for (auto at = packet.find(what); at != std::string::npos; at = packet.find(what, at + what.size())) {
        packet.replace(at, what.size(), filled);
    }
}

}  // namespace commitq::test
