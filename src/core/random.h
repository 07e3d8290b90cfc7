// Randomness: a fast generator for jitter, and tokens that must never collide.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace commitq::core {

/// @p random within 0.0 to 1.0, whatever the caller made of it; NaN is 0.
[[nodiscard]] constexpr double unit_interval(double random) noexcept {
    return random > 0.0 ? std::min(random, 1.0) : 0.0;
}

/// Numbers for jitter, not for secrets. Thread-compatible. With a seed, the same numbers each time (SplitMix64).
class Random {
public:
    /// Seeds itself from `std::random_device`.
    Random();
    explicit Random(std::uint64_t seed) noexcept : state_{seed} {}

    /// Evenly spread over [0, 1).
    [[nodiscard]] double uniform() noexcept;

private:
    std::uint64_t state_;
};

/// Names one start of one worker. All zero means nobody.
using Token = std::array<unsigned char, 16>;

/// 128 bits from `std::random_device`, never all zero. Not from host and pid: two containers share those.
[[nodiscard]] Token make_token();

/// 32 uppercase hexadecimal digits.
[[nodiscard]] std::string hex(const Token& token);

}  // namespace commitq::core
