#include "core/state.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace commitq::core {

namespace {

constexpr std::array<std::string_view, 6> kNames{"pending", "running", "completed", "dead", "cancelled", "blocked"};

}  // namespace

std::string_view to_string(State state) noexcept { return kNames[static_cast<std::size_t>(state)]; }

std::optional<State> parse_state(std::string_view name) noexcept {
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<State>(found - kNames.begin());
}

bool can_go(State from, State to) noexcept {
    using enum State;
    switch (from) {
        case pending:  // dead: discarded unrun
            return to == running || to == blocked || to == cancelled || to == dead;
        case running:
            return to == completed || to == pending || to == dead || to == cancelled;
        case blocked:
            return to == pending || to == cancelled || to == dead;
        case dead:
        case cancelled:  // replayed
            return to == pending;
        case completed:
            return false;
    }
    return false;
}

}  // namespace commitq::core
