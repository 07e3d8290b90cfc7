#include <commitq/outcome.h>

#include "core/duration.h"

#include <algorithm>
#include <utility>

namespace commitq {

namespace {

std::chrono::microseconds clamped(std::chrono::microseconds delay) {
    return std::clamp(delay, std::chrono::microseconds{0}, core::kMaxDelay);
}

}  // namespace

Outcome Outcome::done() { return {Kind::done, {}, std::nullopt}; }

Outcome Outcome::retry(std::string reason) { return {Kind::retry, std::move(reason), std::nullopt}; }

Outcome Outcome::retry(std::string reason, std::chrono::microseconds delay) {
    return {Kind::retry, std::move(reason), clamped(delay)};
}

Outcome Outcome::snooze(std::chrono::microseconds delay) { return {Kind::snooze, {}, clamped(delay)}; }

Outcome Outcome::dead(std::string reason) { return {Kind::dead, std::move(reason), std::nullopt}; }

Outcome Outcome::cancel(std::string reason) { return {Kind::cancel, std::move(reason), std::nullopt}; }

}  // namespace commitq
