// A TCP proxy that knows the framing of MySQL's packets: it can break a connection at any of them, in either direction.
#pragma once

#include <commitq/connect_options.h>

#include <atomic>
#include <chrono>
#include <cstddef>
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

/// What becomes of a packet.
enum class Passage {
    pass,         ///< On to the other side.
    lose,         ///< It never arrives: both connections break.
    lose_answer,  ///< Of a client's packet: it arrives, the connection breaks before the answer comes back.
    mute,         ///< Of a client's packet: it arrives, and nothing that the server says from then on comes back.
    cut_off,     ///< Nothing arrives any more, in either direction, and neither side is told: as when a network is cut.
    half_close,  ///< It never arrives: that direction ends, and the other one goes on.
    hold,        ///< It arrives after `kHold`.
};

inline constexpr std::chrono::milliseconds kHold{200};

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

/// Counts packets, and does something to the n-th, once. Thread-safe.
class PacketCount {
public:
    /// From now on: the next packet is the first. @p n 0: only counts.
    void start(std::size_t n = 0, Passage passage = Passage::pass) {
        const std::scoped_lock lock{mutex_};
        n_ = n;
        passage_ = passage;
        seen_ = 0;
    }
    Passage watch() {
        const std::scoped_lock lock{mutex_};
        return ++seen_ == n_ ? passage_ : Passage::pass;
    }
    [[nodiscard]] std::size_t seen() const {
        const std::scoped_lock lock{mutex_};
        return seen_;
    }
    [[nodiscard]] bool has_snapped() const {
        const std::scoped_lock lock{mutex_};
        return n_ != 0 && seen_ >= n_;
    }

private:
    mutable std::mutex mutex_;
    std::size_t n_ = 0;
    Passage passage_ = Passage::pass;
    std::size_t seen_ = 0;
};

/// Forwards connections to a server. For connections without TLS: it must read the packets. Ends its connections with it.
class PacketProxy {
public:
    /// Called with each packet's bytes (for a statement 0x03 and its text), from several threads. It may change them, but
    /// not their number.
    using Watch = std::function<Passage(std::string& packet)>;

    /// @param server by TCP.
    /// @param requests sees what clients send.
    /// @param replies sees what the server sends; empty: all pass.
    explicit PacketProxy(const ConnectOptions& server, Watch requests, Watch replies = {});
    PacketProxy(const PacketProxy&) = delete;
    PacketProxy& operator=(const PacketProxy&) = delete;
    ~PacketProxy();

    /// How to connect through it.
    [[nodiscard]] ConnectOptions options() const;
    /// How many connections clients have made.
    [[nodiscard]] std::size_t connections() const { return connections_; }

private:
    class Pair;
    void accept_all();
    void forward(int client);

    ConnectOptions server_;
    Watch requests_;
    Watch replies_;
    int listener_;
    std::uint16_t port_ = 0;
    std::atomic<std::size_t> connections_{0};
    std::vector<std::unique_ptr<Pair>> pairs_;  ///< The acceptor's, until it has ended.
    std::thread acceptor_;
};

/// Replaces each @p what in a packet by @p with, filled up with blanks. @p with must not be longer.
void replace_words(std::string& packet, std::string_view what, std::string_view with);

}  // namespace commitq::test
