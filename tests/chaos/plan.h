// What goes wrong, and when: all of it follows from a seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::chaos {

inline constexpr int kWorkers = 4;
inline constexpr int kProducers = 3;
inline constexpr std::chrono::seconds kLease{2};

enum class FaultKind {
    kill_worker,       ///< SIGKILL.
    restart_worker,    ///< SIGTERM, and `Worker::stop` with a short deadline.
    freeze_worker,     ///< SIGSTOP for longer than the lease, then SIGCONT.
    kill_producer,     ///< SIGKILL, wherever it is.
    kill_server,       ///< SIGKILL; it is started again.
    read_only,         ///< As after a failover.
    kill_connections,  ///< KILL of many.
    lock_jobs,         ///< A session that holds the rows of jobs.
};
std::string_view to_string(FaultKind kind);

struct Fault {
    FaultKind kind{};
    std::chrono::milliseconds after{};  ///< Since the end of the one before, in its lane.
    std::chrono::milliseconds lasts{};
    int target = 0;  ///< Which worker, which producer.
    int amount = 0;  ///< How many connections or jobs.
};

/// Faults that happen one after the other. The lanes run beside each other.
using Lane = std::vector<Fault>;

/// Long enough for that time: lanes are in need of no more. Each kind comes early in it and again and again.
std::vector<Lane> make_plan(std::uint64_t seed, std::chrono::milliseconds duration);

}  // namespace commitq::chaos
