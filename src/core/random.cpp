#include "core/random.h"

#include "core/text.h"

#include <algorithm>
#include <random>

namespace commitq::core {

namespace {

std::uint64_t random_seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

Random::Random() : Random{random_seed()} {}

double Random::uniform() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    return static_cast<double>(z >> 11U) * 0x1p-53;  // the 53 bits that a double holds exactly, so never 1.0
}

Token make_token() {
    std::random_device device;
    std::uniform_int_distribution<int> byte{0, 255};
    Token token{};
    while (token == Token{})
        for (auto& b : token) b = static_cast<unsigned char>(byte(device));
    return token;
}

std::string hex(const Token& token) {
    std::string bytes(token.size(), '\0');
    std::copy(token.begin(), token.end(), bytes.begin());
    return hex(bytes);
}

}  // namespace commitq::core
