// The states of a job, and which may follow which.
#pragma once

#include <optional>
#include <string_view>

namespace commitq::core {

/// As in the `state` column.
enum class State {
    pending,    ///< To be claimed once it is due.
    running,    ///< A worker holds its lease.
    completed,  ///< Done; the end.
    dead,       ///< Failed for good, until someone replays it.
    cancelled,  ///< No longer wanted, until someone replays it.
    blocked,    ///< Waits for its ordering key.
};

/// The name in the `state` column.
[[nodiscard]] std::string_view to_string(State state) noexcept;
/// Reverses `to_string`.
[[nodiscard]] std::optional<State> parse_state(std::string_view name) noexcept;
/// Whether a statement may take a job from one state to the other.
[[nodiscard]] bool can_go(State from, State to) noexcept;

}  // namespace commitq::core
