// Jobs that the server refuses to let anybody claim. No I/O.
#pragma once

#include <commitq/error.h>
#include <core/clock.h>
#include <mysql/error_map.h>
#include <store/claim.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace commitq::worker {

/// One broken row must not keep all others of its claim from being taken. After a claim of many was refused, the next ones
/// take one job at a time, until the one to blame is found; that one is left out for a while.
/// Threading: one thread at a time.
class Refusals {
public:
    /// How many to claim when @p wanted are.
    [[nodiscard]] int limit(int wanted) const { return hunting_ > 0 ? 1 : wanted; }

    /// Adds the jobs to leave out.
    void add_to(std::vector<JobId>& not_these, core::Clock::time_point now) {
        std::erase_if(left_out_, [&](const LeftOut& job) { return job.until <= now; });
        for (const LeftOut& job : left_out_) {
            not_these.push_back(job.id);
        }
    }

    void succeeded() { hunting_ = std::max(0, hunting_ - 1); }

    /// @param limit what the failed claim had as its own.
    void failed(const Error& error, int limit, core::Clock::time_point now) {
        if (const auto* refused = dynamic_cast<const store::JobRefused*>(&error)) {
            hunting_ = 0;
            left_out_.push_back({.id = refused->id(), .until = now + kLeaveOut});
            if (left_out_.size() > kMostLeftOut) {
                left_out_.pop_front();
            }
        } else if (mysql::is_refusal(error)) {
            hunting_ = limit;
        }
    }

private:
    struct LeftOut {
        JobId id;
        core::Clock::time_point until;
    };
    static constexpr std::size_t kMostLeftOut = 100;
    static constexpr auto kLeaveOut = std::chrono::seconds{10};

    int hunting_ = 0;  ///< Claims still to be made of one job each.
    std::deque<LeftOut> left_out_{};
};

}  // namespace commitq::worker
