#include "support/packet_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
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
    Pair(int client, int server, const Watch& watch)
        : client_{client}, server_{server}, watch_{watch}, up_{[this] { go_up(); }}, down_{[this] { go_down(); }} {}
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;
    ~Pair() {
        cut();
        up_.join();
        down_.join();
        close(client_);
        close(server_);
    }

private:
    void cut() const {
        shutdown(client_, SHUT_RDWR);
        shutdown(server_, SHUT_RDWR);
    }

    bool forward(std::string packet) {
        std::string body = packet.substr(kHeader);
        const Passage passage = watch_(body);
        if (passage == Passage::lose) {
            return false;
        }
        cut_off_ = cut_off_ || passage == Passage::cut_off;
        if (cut_off_) {
            return true;
        }
        deaf_ = passage == Passage::lose_answer;
        muted_ = muted_ || passage == Passage::mute;
        return send_all(server_, packet.replace(kHeader, body.size(), body));
    }

    void go_up() {
        std::string bytes;
        while (receive(client_, bytes)) {
            while (const std::size_t length = whole_packet(bytes)) {
                if (!forward(bytes.substr(0, length))) {
                    return cut();
                }
                bytes.erase(0, length);
            }
        }
        cut();
    }

    void go_down() {
        std::string bytes;
        // The answer to a packet that was to lose it is read all the same: the server has done what it says.
        while (receive(server_, bytes) && !deaf_ && (muted_ || cut_off_ || send_all(client_, bytes))) {
            bytes.clear();
        }
        if (!cut_off_) {
            cut();
        }
    }

    int client_;
    int server_;
    const Watch& watch_;
    std::atomic<bool> deaf_{false};
    std::atomic<bool> muted_{false};
    std::atomic<bool> cut_off_{false};
    std::thread up_;
    std::thread down_;
};

PacketProxy::PacketProxy(const ConnectOptions& server, Watch watch)
    : server_{server}, watch_{std::move(watch)}, listener_{new_socket()} {
    sockaddr_in address = local_address(0);
    socklen_t length = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    if (bind(listener_, raw, length) != 0 || listen(listener_, 16) != 0 || getsockname(listener_, raw, &length) != 0) {
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
    for (int client = 0; (client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        const int server = new_socket();
        const sockaddr_in address = local_address(server_.port);
        if (connect(server, plain(address), sizeof address) != 0) {
            close(server);
            close(client);
            continue;
        }
        pairs_.push_back(std::make_unique<Pair>(client, server, watch_));
    }
}

void replace_words(std::string& packet, std::string_view what, std::string_view with) {
    std::string filled{with};
    filled.resize(what.size(), ' ');
    for (auto at = packet.find(what); at != std::string::npos; at = packet.find(what, at + what.size())) {
        packet.replace(at, what.size(), filled);
    }
}

}  // namespace commitq::test
