#include <worker/claim_plan.h>

#include <algorithm>

namespace commitq::worker {
namespace {

using namespace std::chrono_literals;

constexpr core::Clock::duration kCheapLook = 5ms;
constexpr auto kCostFactor = 20;
constexpr core::Clock::duration kLookWhileBusy = 100ms;
constexpr core::Clock::duration kLongestWhileBusy = 1s;
constexpr auto kCostFactorWhileBusy = 50;

}  // namespace

core::Clock::time_point ClaimPlan::next_look() const {
    const auto last = last_look_.value_or(core::Clock::time_point::min());
    return !last_look_ || cost_ <= kCheapLook ? last : last + kCostFactor * cost_;
}

bool ClaimPlan::may_look(core::Clock::time_point now) const { return now >= next_look(); }

bool ClaimPlan::should_look(core::Clock::time_point now) const {
    const auto pause = std::clamp(kCostFactorWhileBusy * cost_, kLookWhileBusy, kLongestWhileBusy);
    return !last_look_ || (may_look(now) && now - *last_look_ >= pause);
}

void ClaimPlan::looked(std::span<const store::Due> found, core::Clock::time_point now, core::Clock::duration cost) {
    last_look_ = now;
    cost_ = cost;
    next_due_.reset();
    for (Queue& queue : queues_) {
        for (Place& place : queue) {
            place.due = false;
            place.pending = false;
        }
    }
    for (const store::Due& due : found) {
        Place& place = queues_[due.queue][static_cast<std::size_t>(due.priority)];
        place.pending = true;
        place.due = due.in <= 0us;
        if (place.due) {
            place.from = due.available_at;
        } else {
            const auto at = now + due.in;
            next_due_ = next_due_ ? std::min(*next_due_, at) : at;
        }
    }
}

void ClaimPlan::assume() {
    for (Queue& queue : queues_) {
        for (Place& place : queue) {
            place.due = !place.from.empty();
        }
    }
}

std::optional<ClaimPlan::Target> ClaimPlan::next_of(std::size_t queue) const {
    const Queue& places = queues_[queue];
    const auto best = std::find_if(places.begin(), places.end(), [](const Place& place) { return place.due; });
    if (best == places.end()) {
        return std::nullopt;
    }
    return Target{.queue = queue, .priority = static_cast<int>(best - places.begin()), .from = best->from};
}

std::optional<core::Clock::time_point> ClaimPlan::next_due() const {
    return next_due_ ? std::optional{std::max(*next_due_, next_look())} : std::nullopt;
}

std::optional<ClaimPlan::Target> ClaimPlan::next() const {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
        const std::size_t first = order_ == QueueOrder::strict ? 0 : turn_;
        if (auto target = next_of((first + i) % queues_.size())) {
            return target;
        }
    }
    return std::nullopt;
}

std::optional<ClaimPlan::Target> ClaimPlan::likely() const {
    if (!last_ || (order_ == QueueOrder::strict && last_->queue != 0)) {
        return std::nullopt;
    }
    const Queue& places = queues_[last_->queue];
    const auto better_end = places.begin() + last_->priority;
    if (std::any_of(places.begin(), better_end, [](const Place& place) { return place.pending; })) {
        return std::nullopt;  // it would find those, due or not, and take nothing
    }
    return last_;
}

void ClaimPlan::found_better(const Target& target, int priority) {
    Place& place = queues_[target.queue][static_cast<std::size_t>(priority)];
    place.due = true;
    place.pending = true;
    if (place.from.empty()) {
        place.from = store::kFromTheBeginning;
    }
}

void ClaimPlan::claimed(const Target& target, const std::string& last_available_at, bool more) {
    Place& place = queues_[target.queue][static_cast<std::size_t>(target.priority)];
    place.due = more;
    if (!last_available_at.empty()) {
        place.from = last_available_at;
        last_ =
            Target{.queue = target.queue, .priority = target.priority, .from = last_available_at, .only_if_best = true};
        turn_ = (target.queue + 1) % queues_.size();
    }
}

}  // namespace commitq::worker
