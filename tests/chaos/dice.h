// Random numbers that are the same for the same seed with every compiler and library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace commitq::chaos {

/// SplitMix64.
class Dice {
public:
    explicit Dice(std::uint64_t seed) noexcept : state_{seed} {}
    /// For a part of what @p seed decides: parts don't depend on each other.
    Dice(std::uint64_t seed, std::initializer_list<std::uint64_t> part) noexcept : state_{seed} {
        for (const std::uint64_t number : part) {
            state_ = next() ^ number;
        }
    }

    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }
    /// Both ends included.
    int between(int low, int high) noexcept {
        return low + static_cast<int>(next() % (static_cast<std::uint64_t>(high - low) + 1));
    }
    bool once_in(int times) noexcept { return between(1, times) == 1; }
    template <class T>
    void shuffle(std::vector<T>& cards) noexcept {
        for (int i = static_cast<int>(cards.size()) - 1; i > 0; --i) {
            std::swap(cards[static_cast<std::size_t>(i)], cards[static_cast<std::size_t>(between(0, i))]);
        }
    }

private:
    std::uint64_t state_;
};

}  // namespace commitq::chaos
