#include "receiver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "crc32.h"
#include "notification.h"

namespace shop {
namespace {

[[noreturn]] void throw_errno(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

int open_log(const std::string& path) {
    if (!path.empty()) {
        const int file = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return file >= 0 ? file : (throw_errno(path), -1);
    }
    std::string name = (std::filesystem::temp_directory_path() / "shop-deliveries-XXXXXX").string();
    const int file = mkostemp(name.data(), O_APPEND | O_CLOEXEC);
    if (file < 0) {
        throw_errno(name);
    }
    unlink(name.c_str());  // it lives for as long as it is open
    return file;
}

std::string read_file(int file) {
    std::string text;
    std::array<char, 65536> buffer{};
    for (off_t at = 0;;) {
        const ssize_t count = pread(file, buffer.data(), buffer.size(), at);
        if (count < 0) {
            throw_errno("cannot read the log of deliveries");
        }
        if (count == 0) {
            return text;
        }
        text.append(buffer.data(), static_cast<std::size_t>(count));
        at += count;
    }
}

}  // namespace

DeliveryLog::DeliveryLog(const std::string& path) : file_{open_log(path)} {}

bool DeliveryLog::append(const Delivery& d) {
    const std::string line = fmt::format("{} {} {} {} {}\n", d.job, d.type, d.line, d.size, d.checksum);
    return write(file_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

std::vector<Delivery> DeliveryLog::read() const {
    std::vector<Delivery> deliveries;
    std::istringstream text{read_file(file_.get())};
    for (std::string line; std::getline(text, line);) {
        std::istringstream fields{line};
        Delivery& d = deliveries.emplace_back();
        if (!(fields >> d.job >> d.type >> d.line >> d.size >> d.checksum)) {
            throw std::runtime_error{fmt::format("the log of deliveries is damaged at line {}", deliveries.size())};
        }
    }
    return deliveries;
}

Receiver::~Receiver() {
    for (Connection& connection : connections_) {
        shutdown(connection.socket.get(), SHUT_RDWR);
        connection.thread.join();
    }
}

Receiver::Line Receiver::connect() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        throw_errno("socketpair");
    }
    Line line{static_cast<int>(connections_.size()), File{ends[1]}};
    Connection& connection = connections_.emplace_back();
    connection.socket = File{ends[0]};
    connection.thread = std::thread{[this, number = line.number, socket = ends[0]] { serve(number, socket); }};
    return line;
}

void Receiver::serve(int number, int socket) {
    DeliveryHeader header;
    std::string payload;
    while (receive_all(socket, reinterpret_cast<char*>(&header), sizeof header)) {
        Delivery delivery{.job = header.job, .type = std::string(header.type_size, '\0'), .size = header.payload_size};
        payload.resize(header.payload_size);
        if (!receive_all(socket, delivery.type.data(), delivery.type.size()) ||
            !receive_all(socket, payload.data(), payload.size())) {
            return;  // killed in mid-sentence: as if it had said nothing
        }
        delivery.line = line_of(payload).value_or(0);
        delivery.checksum = crc32(payload);
        const auto receipt = static_cast<char>(take(delivery));
        if (!keeps_waiting(number) && !send_all(socket, {&receipt, 1})) {
            return;
        }
    }
}

Receipt Receiver::take(const Delivery& delivery) {
    const std::scoped_lock lock{mutex_};
    if (seen_.contains(delivery.job)) {
        ++duplicates_;
        return Receipt::repeated;
    }
    if (broken_ || !log_.append(delivery)) {
        broken_ = true;
        return Receipt::failed;
    }
    seen_.insert(delivery.job);
    ++delivered_;
    return Receipt::taken;
}

void Receiver::keep_waiting_after(std::uint64_t count) {
    const std::scoped_lock lock{mutex_};
    keep_waiting_after_ = count;
}

bool Receiver::keeps_waiting(int number) {
    const std::scoped_lock lock{mutex_};
    if (kept_waiting_ || !keep_waiting_after_ || delivered_ < *keep_waiting_after_) {
        return false;
    }
    kept_waiting_ = number;
    return true;
}

std::optional<int> Receiver::kept_waiting() const {
    const std::scoped_lock lock{mutex_};
    return kept_waiting_;
}

std::vector<Delivery> Receiver::log() const {
    const std::scoped_lock lock{mutex_};
    return log_.read();
}

}  // namespace shop
