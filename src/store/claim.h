// Finding due jobs and taking them.
#pragma once

#include <commitq/error.h>
#include <commitq/queue.h>
#include <core/random.h>
#include <mysql/session.h>
#include <store/tables.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::store {

inline constexpr int kPriorities = 10;

/// The earliest pending job of one queue and priority.
struct Due {
    std::size_t queue;  ///< Index into the queues asked for.
    int priority;
    std::string available_at;      ///< As the server prints it.
    std::chrono::microseconds in;  ///< Until it is due, 0 or less when it is.
};

/// `look`: the earliest pending job of each queue and priority; index dives, no locks, one round trip.
std::string look_sql(const Tables& tables, std::span<const std::string> queues);
/// `look_queues`: which queues have pending jobs at all; asked first where there are many queues.
std::string look_queues_sql(const Tables& tables, std::span<const std::string> queues);
std::vector<Due> look(mysql::Session& session, const Tables& tables, std::span<const std::string> queues);

/// What a worker claims by: fixed for its life, made once.
struct Claimant {
    core::Token owner;
    std::chrono::microseconds lease;
    std::string known_types;   ///< `_ascii x'..',...`: jobs of other types are left alone.
    std::string max_attempts;  ///< Expression for max_attempts: the job's own, or what its handler says.
};
Claimant make_claimant(const core::Token& owner, std::chrono::microseconds lease,
                       std::span<const std::pair<std::string, int>> types_and_max_attempts);

/// `better`: the best priority with pending jobs, due or not, that is better than @p priority; NULL if there is none. A dive.
std::string better_sql(const Tables& tables, std::string_view queue, int priority);

/// `ClaimRange::from` for a place of which nothing is known.
inline constexpr std::string_view kFromTheBeginning = "1970-01-01 00:00:00.000000";

/// One claim: a queue, a priority, and where in it to begin.
struct ClaimRange {
    std::string_view queue;
    int priority;
    std::string_view from;  ///< available_at to begin at: skips entries that the server has not purged yet.
    int limit;
    std::size_t byte_budget;           ///< Payload bytes; one job is taken even if it alone is above.
    std::span<const JobId> not_these;  ///< Held by this process still, or refused by the server.
    bool only_if_best = false;         ///< Takes nothing when the queue has pending jobs of a better priority.
};

/// A job that this worker owns since the claim's COMMIT.
struct ClaimedJob {
    JobId id = 0;
    std::string queue{};
    std::string type{};
    int priority = 0;
    int attempt = 0;
    int max_attempts = 0;
    std::string payload{};
    std::string headers{};
    std::chrono::system_clock::time_point created_at{};
    std::chrono::microseconds wait{0};
    bool damaged = false;  ///< The payload is not there in full: somebody changed the tables by hand.
};

struct ClaimResult {
    std::vector<ClaimedJob> jobs{};
    std::string last_available_at{};  ///< Of the last job taken: where the next claim begins.
    bool more = false;                ///< The limit was reached: there may be more.
    std::optional<int> better{};      ///< `only_if_best`: the better priority that has jobs; none was taken.
};

/// The server refuses to let this job be claimed; nothing was.
class JobRefused : public Error {
public:
    JobRefused(const Error& error, JobId id) : Error{error}, id_{id} {}
    [[nodiscard]] JobId id() const noexcept { return id_; }

private:
    JobId id_;
};

/// `claim_select`, `claim_update`: takes up to `limit` jobs; two round trips, one for an empty one's end.
/// Throws JobRefused, when the server refuses the one job that it was about, or Error. Then nothing was claimed, or, when the
/// connection broke in COMMIT, what was runs out with its lease.
ClaimResult claim(mysql::Session& session, const Tables& tables, const Claimant& claimant, const ClaimRange& range);

std::string claim_select_sql(const Tables& tables, const Claimant& claimant, const ClaimRange& range);
std::string claim_update_sql(const Tables& tables, const Claimant& claimant, std::span<const JobId> ids);
std::string read_payloads_sql(const Tables& tables, std::span<const std::uint64_t> payload_ids);

}  // namespace commitq::store
