// Where orders come from: a file of JSON lines, or standard input.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "console.h"

namespace shop {

struct Order {
    std::uint64_t line = 0;  ///< Where it stands in the input, from 1: the order's number in this run.
    std::string json{};      ///< Its text, byte by byte.
};

/// Longest line.
inline constexpr std::size_t kMaxOrder = std::size_t{16} << 20U;

/// Cuts what comes from a file descriptor into lines. A line above the limit is cut, and told by its length.
class LineReader {
public:
    explicit LineReader(int file) : file_{file}, buffer_(std::size_t{256} << 10U) {}

    /// The next line without its end; false after the last. @throws std::system_error
    bool next(std::string& line, const std::stop_token& stop);

private:
    bool fill(const std::stop_token& stop);

    int file_;
    std::vector<char> buffer_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

/// Reads orders. A line that isn't one is reported with its number and skipped. Threading: one thread at a time.
class OrderReader {
public:
    /// @throws std::system_error when the file can't be opened.
    OrderReader(const std::string& path, Console& console);
    OrderReader(const OrderReader&) = delete;
    OrderReader& operator=(const OrderReader&) = delete;
    ~OrderReader();

    /// The next order; nothing at the end of the input, or when asked to stop. @throws std::system_error
    std::optional<Order> next(const std::stop_token& stop);

    [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_; }

private:
    int file_;
    Console& console_;
    LineReader lines_;
    std::uint64_t line_ = 0;
    std::uint64_t skipped_ = 0;
};

/// Hands orders from the reader to the producers, and makes the reader wait when it is far ahead. Threading: thread-safe.
class OrderBuffer {
public:
    void push(Order order, const std::stop_token& stop);
    /// Nothing more will come.
    void close();
    /// Nothing at the end, or when asked to stop.
    std::optional<Order> pop(const std::stop_token& stop);

private:
    static constexpr std::size_t kCapacity = std::size_t{256} << 20U;  ///< In bytes.

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Order> orders_;
    std::size_t size_ = 0;
    bool closed_ = false;
};

}  // namespace shop
