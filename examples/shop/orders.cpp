#include "orders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "json_check.h"

namespace shop {
namespace {

int open_input(const std::string& path) {
    const int file = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        throw std::system_error{errno, std::generic_category(), path == "-" ? "standard input" : path};
    }
    return file;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::optional<std::string> problem_with(const std::string& line) {
    if (line.size() > kMaxOrder) {
        return fmt::format("this is longer than {} MiB", kMaxOrder >> 20U);
    }
    return json_object_problem(line);
}

/// What an order takes in the buffer, roughly.
std::size_t size_of(const Order& order) { return sizeof order + order.json.size(); }

}  // namespace

bool LineReader::fill(const std::stop_token& stop) {
    for (;;) {
        if (stop.stop_requested()) {
            return false;
        }
        pollfd input{.fd = file_, .events = POLLIN, .revents = 0};
        const int ready = poll(&input, 1, 200);
        const ssize_t count = ready > 0 ? read(file_, buffer_.data(), buffer_.size()) : ready;
        if (count < 0 && errno != EINTR && errno != EAGAIN) {
            throw std::system_error{errno, std::generic_category(), "cannot read the orders"};
        }
        if (ready > 0 && count >= 0) {
            begin_ = 0;
            end_ = static_cast<std::size_t>(count);
            return count > 0;
        }
    }
}

bool LineReader::next(std::string& line, const std::stop_token& stop) {
    line.clear();
    bool any = false;
    while (begin_ < end_ || fill(stop)) {
        any = true;
        const char* const from = buffer_.data() + begin_;
        const auto* const newline = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
        const std::size_t count = newline != nullptr ? static_cast<std::size_t>(newline - from) : end_ - begin_;
        line.append(from, std::min(count, kMaxOrder + 2 - line.size()));  // enough to see that it is too long
        begin_ += count + (newline != nullptr ? 1 : 0);
        if (newline != nullptr) {
            break;
        }
    }
    if (line.ends_with('\r')) {
        line.pop_back();
    }
    return any && !stop.stop_requested();
}

OrderReader::OrderReader(const std::string& path, Console& console)
    : file_{open_input(path)}, console_{console}, lines_{file_} {}

OrderReader::~OrderReader() { close(file_); }

std::optional<Order> OrderReader::next(const std::stop_token& stop) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    Order order;
    while (lines_.next(order.json, stop)) {
        order.line = ++line_;
        if (line_ == 1 && order.json.starts_with(kByteOrderMark)) {
            order.json.erase(0, kByteOrderMark.size());
        }
        if (is_blank(order.json)) {
            continue;
        }
        const auto problem = problem_with(order.json);
        if (!problem) {
            return order;
        }
        ++skipped_;
        console_.note(fmt::format("line {} is skipped: {}", line_, *problem));
    }
    return std::nullopt;
}

void OrderBuffer::push(Order order, const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, stop, [&] { return size_ < kCapacity; });
    size_ += size_of(order);
    orders_.push_back(std::move(order));
    changed_.notify_all();
}

void OrderBuffer::close() {
    const std::scoped_lock lock{mutex_};
    closed_ = true;
    changed_.notify_all();
}

std::optional<Order> OrderBuffer::pop(const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, stop, [&] { return !orders_.empty() || closed_; });
    if (orders_.empty() || stop.stop_requested()) {
        return std::nullopt;
    }
    Order order = std::move(orders_.front());
    orders_.pop_front();
    size_ -= size_of(order);
    changed_.notify_all();
    return order;
}

}  // namespace shop
