// A TCP proxy that sees each packet of a client before the server does.
#pragma once

#include <commitq/connect_options.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace commitq::test {

/// What becomes of a client's packet.
enum class Passage {
    pass,         ///< On to the server.
    lose,         ///< It never arrives: both connections break.
    lose_answer,  ///< It arrives, the connection breaks before the answer comes back.
    mute,         ///< It arrives, and nothing that the server says from then on comes back.
    cut_off,  ///< Nothing arrives any more, in either direction, and neither side is told: as when a network is cut.
};

/// Does something to the next packet that holds a word, once. Thread-safe.
class PacketTrap {
public:
    void set(std::string word, Passage passage) {
        const std::scoped_lock lock{mutex_};
        word_ = std::move(word);
        passage_ = passage;
    }
    Passage watch(const std::string& packet) {
        const std::scoped_lock lock{mutex_};
        return packet.find(word_) == std::string::npos ? Passage::pass : std::exchange(passage_, Passage::pass);
    }
    bool has_snapped() {
        const std::scoped_lock lock{mutex_};
        return passage_ == Passage::pass;
    }

private:
    std::mutex mutex_;
    std::string word_{};
    Passage passage_ = Passage::pass;
};

/// Forwards connections to a server. For connections without TLS: it must read the packets. Ends its connections with it.
class PacketProxy {
public:
    /// Called with each packet's bytes (for a statement 0x03 and its text), from several threads. It may change them, but
    /// not their number.
    using Watch = std::function<Passage(std::string& packet)>;

    /// @param server by TCP.
    PacketProxy(const ConnectOptions& server, Watch watch);
    PacketProxy(const PacketProxy&) = delete;
    PacketProxy& operator=(const PacketProxy&) = delete;
    ~PacketProxy();

    /// How to connect through it.
    [[nodiscard]] ConnectOptions options() const;

private:
    class Pair;
    void accept_all();

    ConnectOptions server_;
    Watch watch_;
    int listener_;
    std::uint16_t port_ = 0;
    std::vector<std::unique_ptr<Pair>> pairs_;  ///< The acceptor's, until it has ended.
    std::thread acceptor_;
};

/// Replaces each @p what in a packet by @p with, filled up with blanks. @p with must not be longer.
void replace_words(std::string& packet, std::string_view what, std::string_view with);

}  // namespace commitq::test
