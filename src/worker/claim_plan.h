// Where to claim next: which queue and priority, and from where in it. No I/O.
#pragma once

#include <commitq/worker.h>
#include <core/clock.h>
#include <store/claim.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace commitq::worker {

/// Remembers what the last look at the queues found, and what claims since then emptied.
///
/// The hint: each queue and priority has a position (`available_at`) to begin at, behind entries of finished jobs that the
/// server could not purge yet. A look sets it to the true beginning, a claim moves it forward. It decides no more than
/// when a job is found: a job that commits late stands before the hint and is found by the next look.
/// Threading: one thread at a time.
class ClaimPlan {
public:
    ClaimPlan(std::size_t queues, QueueOrder order) : queues_(queues), order_{order} {}

    /// A look is allowed again when 20 times its own cost has passed, so that a slow one (an old snapshot blocks the
    /// purge) takes a twentieth of the server's time at the most; a cheap one always.
    [[nodiscard]] bool may_look(core::Clock::time_point now) const;
    /// When the next look is allowed.
    [[nodiscard]] core::Clock::time_point next_look() const;
    /// While there is work: time for a look all the same, for better priorities, other queues and late commits. Every 100 ms,
    /// or when 50 times its cost has passed, but every second if it may.
    [[nodiscard]] bool should_look(core::Clock::time_point now) const;

    /// Takes in what a look found.
    void looked(std::span<const store::Due> found, core::Clock::time_point now, core::Clock::duration cost);

    /// In place of a look that is not allowed yet: where there were jobs before, there may be some behind the hint.
    void assume();

    struct Target {
        std::size_t queue;
        int priority;
        std::string from;
        bool only_if_best = false;  ///< Nobody has looked: the claim finds out whether a better priority has jobs.
    };
    /// The best place to claim from: the queue in turn (or the first, when strict), its best priority with due jobs.
    [[nodiscard]] std::optional<Target> next() const;

    /// Where a job that was just announced most likely is: where the last one was. Nothing if only a look can tell.
    [[nodiscard]] std::optional<Target> likely() const;

    /// Takes in what a claim there gave.
    void claimed(const Target& target, const std::string& last_available_at, bool more);

    /// Takes in that a claim found a better priority to have jobs, due or not: that is the place to claim from next.
    void found_better(const Target& target, int priority);

    /// When the next known job that isn't due yet becomes due, as of the last look, and a look is allowed that finds it;
    /// nothing if none is known.
    [[nodiscard]] std::optional<core::Clock::time_point> next_due() const;

private:
    struct Place {
        bool due = false;
        bool pending = false;  ///< The last look found jobs, due or not.
        std::string from{};    ///< Empty: never seen a job.
    };
    using Queue = std::array<Place, store::kPriorities>;

    [[nodiscard]] std::optional<Target> next_of(std::size_t queue) const;

    std::vector<Queue> queues_;
    QueueOrder order_;
    std::optional<Target> last_{};  ///< Where the last job was claimed.
    std::size_t turn_ = 0;
    std::optional<core::Clock::time_point> last_look_{};
    core::Clock::duration cost_{0};
    std::optional<core::Clock::time_point> next_due_{};
};

}  // namespace commitq::worker
