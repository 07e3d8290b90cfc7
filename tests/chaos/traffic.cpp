#include "chaos/traffic.h"

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>

namespace commitq::chaos {
namespace {

constexpr std::size_t kSeedDigits = 16;

/// The seed in hexadecimal digits, and what follows from it.
std::string make_payload(std::uint64_t seed, std::size_t size) {
    std::string payload = fmt::format("{:016x}", seed);
    Dice dice{seed};
    while (payload.size() < size) {
        std::uint64_t bytes = dice.next();
        for (int i = 0; i < 8 && payload.size() < size; ++i, bytes >>= 8U) {
            payload.push_back(static_cast<char>(bytes & 0xffU));
        }
    }
    return payload;
}

}  // namespace

const JobType& draw_type(Dice& dice) {
    static const int all = std::accumulate(std::begin(kTypes), std::end(kTypes), 0,
                                           [](int sum, const JobType& type) { return sum + type.weight; });
    int left = dice.between(1, all);
    for (const JobType& type : kTypes) {
        left -= type.weight;
        if (left <= 0) {
            return type;
        }
    }
    return kTypes[0];
}

std::string draw_payload(Dice& dice) {
    int size = dice.between(16, 600);
    if (dice.once_in(4)) {
        size = dice.between(1'000, 12'000);
    }
    if (dice.once_in(500)) {
        size = dice.between(100'000, 300'000);
    }
    return make_payload(dice.next(), static_cast<std::size_t>(size));
}

bool is_genuine(std::string_view payload) {
    if (payload.size() < kSeedDigits) {
        return false;
    }
    const std::string seed{payload.substr(0, kSeedDigits)};
    return make_payload(std::strtoull(seed.c_str(), nullptr, 16), payload.size()) == payload;
}

}  // namespace commitq::chaos
