// Jobs that the server refuses to let anybody claim. No I/O.
#pragma once

#include <commitq/queue.h>
#include <core/clock.h>

#include <chrono>
#include <cstddef>
#include <vector>

namespace commitq::worker {

/// Such jobs are left out of claims for a while, so that they keep no others from being taken.
/// Threading: one thread at a time.
class Refusals {
public:
    void leave_out(JobId id, core::Clock::time_point now) { jobs_.push_back({.id = id, .until = now + kLeaveOut}); }

    /// So many that no more are looked for: something else is wrong.
    [[nodiscard]] bool full() const { return jobs_.size() >= kMost; }

    /// Adds the jobs to leave out.
    void add_to(std::vector<JobId>& not_these, core::Clock::time_point now) {
        std::erase_if(jobs_, [&](const LeftOut& job) { return job.until <= now; });
        for (const LeftOut& job : jobs_) {
            not_these.push_back(job.id);
        }
    }

private:
    struct LeftOut {
        JobId id;
        core::Clock::time_point until;
    };
    static constexpr std::size_t kMost = 100;
    static constexpr auto kLeaveOut = std::chrono::seconds{10};

    std::vector<LeftOut> jobs_{};
};

}  // namespace commitq::worker
