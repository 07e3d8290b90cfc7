// How a worker process talks to the receiver: over one end of a socket pair that it was started with.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace shop {

/// The descriptor on which a worker process finds its end.
inline constexpr int kReceiverSocket = 3;

/// Goes ahead of each delivery; the type and the payload follow.
struct DeliveryHeader {
    std::uint64_t job = 0;
    std::uint64_t type_size = 0;
    std::uint64_t payload_size = 0;
};

/// What the receiver answers.
enum class Receipt : char {
    taken = 'T',     ///< New, and written down.
    repeated = 'R',  ///< This job was delivered before: nothing was done.
    failed = 'F',    ///< It could not be written down.
};

/// Owns a file descriptor.
class File {
public:
    explicit File(int descriptor = -1) noexcept : descriptor_{descriptor} {}
    File(File&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
    File& operator=(File&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
    }
    [[nodiscard]] int get() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

/// Sends all of @p bytes; false when the other end is gone.
inline bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        bytes.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
    }
    return true;
}

/// Receives @p size bytes; false when the other end is gone.
inline bool receive_all(int socket, char* bytes, std::size_t size) {
    while (size > 0) {
        const ssize_t count = recv(socket, bytes, size, 0);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return false;
        }
        bytes += count < 0 ? 0 : count;
        size -= count < 0 ? 0 : static_cast<std::size_t>(count);
    }
    return true;
}

}  // namespace shop
