#include "core/options.h"

#include "core/duration.h"
#include "core/names.h"
#include "core/range.h"

#include <set>

namespace commitq::core {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDay = std::chrono::days{1};

void check_time(std::string_view operation, std::string_view option, milliseconds value, milliseconds low,
                milliseconds high) {
    check_range(operation, option, value.count(), low.count(), high.count(), "ms");
}

void check_queues(std::string_view operation, const std::vector<std::string>& queues) {
    if (queues.empty()) throw invalid(operation, "queues must name at least one queue");
    for (const auto& queue : queues) check_queue_name(operation, queue);
    if (std::set<std::string_view>{queues.begin(), queues.end()}.size() != queues.size())
        throw invalid(operation, "queues must not name a queue twice");
}

void check_heartbeat(std::string_view operation, milliseconds heartbeat, milliseconds lease) {
    // One renewal may get lost or come late; with two in every lease that does no harm.
    if (heartbeat < milliseconds{0} || heartbeat > lease / 2)
        throw invalid(operation, "heartbeat must be at most half of the lease, or 0 for a third of it");
}

}  // namespace

void validate(const WorkerOptions& options) {
    constexpr std::string_view operation = "worker";
    check_queues(operation, options.queues);
    check_prefix(operation, options.prefix);
    check_range(operation, "concurrency", options.concurrency, 1, 1024);
    check_range(operation, "batch", options.batch, 1, 1000);
    check_range(operation, "prefetch", options.prefetch, 0, 10'000);
    check_time(operation, "lease", options.lease, std::chrono::seconds{1}, kDay);
    check_heartbeat(operation, options.heartbeat, options.lease);
    check_time(operation, "poll_min", options.poll_min, milliseconds{1}, kDay);
    check_time(operation, "poll_max", options.poll_max, options.poll_min, kDay);
    check_range(operation, "max_attempts", options.max_attempts, 1, kMaxAttempts);
}

void validate(const HandlerOptions& options, std::string_view type) {
    constexpr std::string_view operation = "on";
    check_type_name(operation, type);
    if (options.max_attempts) check_range(operation, "max_attempts", *options.max_attempts, 1, kMaxAttempts);
    check_time(operation, "timeout", options.timeout, milliseconds{0},
               std::chrono::duration_cast<milliseconds>(kMaxDelay));
}

void validate(const ReaperOptions& options) {
    constexpr std::string_view operation = "reaper";
    check_prefix(operation, options.prefix);
    check_time(operation, "interval", options.interval, milliseconds{100}, std::chrono::hours{1});
    check_time(operation, "grace", options.grace, milliseconds{0}, kDay);
    check_range(operation, "batch", options.batch, 1, 1000);
}

void validate(const QueueOptions& options) {
    constexpr std::string_view operation = "queue";
    check_prefix(operation, options.prefix);
    check_schema_name(operation, options.database);
}

milliseconds heartbeat_interval(const WorkerOptions& options) noexcept {
    return options.heartbeat == milliseconds{0} ? options.lease / 3 : options.heartbeat;
}

}  // namespace commitq::core
