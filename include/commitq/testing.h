/// @file
/// For the tests of your own service: what did my code enqueue, and what does my handler do?
///
///     commitq::testing::Enqueued enqueued{db};            // before the code under test
///     place_order(db, order);
///     auto jobs = enqueued.jobs({.type = "order.created"});
///     ASSERT_EQ(jobs.size(), 1U);
///
///     auto outcome = commitq::testing::perform(worker, "order.created", json);   // no database at all
#pragma once

#include <commitq/export.h>
#include <commitq/handle.h>
#include <commitq/outcome.h>
#include <commitq/queue.h>
#include <commitq/worker.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::testing {

/// A job as it stands in the tables.
struct EnqueuedJob {
    JobId id = 0;                        ///< Primary key.
    std::string queue{};                 ///< Queue name.
    std::string type{};                  ///< Type name.
    std::string state{};                 ///< `pending`, `running`, `completed`, `dead`, `cancelled`, `blocked`.
    std::string payload{};               ///< The bytes.
    int priority = 0;                    ///< 0 to 9.
    int attempt = 0;                     ///< Attempts used.
    std::chrono::microseconds delay{0};  ///< From enqueue to the earliest run.
    Headers headers{};                   ///< As enqueued.
};

/// Which jobs to look at; empty fields match all.
struct Filter {
    std::string queue{};  ///< Queue name.
    std::string type{};   ///< Type name.
};

/// Remembers where the table ends, and later lists what was added since, as far as the connection sees it: with
/// the uncommitted rows of its own open transaction. Meant for a test's private database, where nobody else enqueues.
class COMMITQ_EXPORT Enqueued {
public:
    /// Reads the highest id. One round trip.
    /// @param db stays yours, and must outlive this.
    /// @param prefix of the table names; `[A-Za-z0-9_]+`, at most 32 characters.
    /// @throws Error `invalid_argument` for the prefix, and what the server gives.
    explicit Enqueued(Handle db, std::string prefix = "commitq_");

    /// The jobs added since, by id.
    /// @throws Error `invalid_argument` for a name that no job can have, and what the server gives.
    [[nodiscard]] std::vector<EnqueuedJob> jobs(const Filter& filter = {}) const;

    /// Throws `Error` (`wrong_state`) with the list of what is there, unless exactly @p count jobs match.
    /// Otherwise throws as `jobs`.
    void expect(std::size_t count, const Filter& filter = {}) const;

private:
    Handle db_;
    std::string prefix_;
    JobId last_ = 0;
};

/// Runs the handler that @p worker has for @p type with @p payload, on this thread, without a database: `begin` and
/// `complete_in` throw `wrong_state`. An exception of the handler becomes `Outcome::retry`, as in a worker.
/// @throws Error `invalid_argument` when there is no such handler.
COMMITQ_EXPORT Outcome perform(Worker& worker, std::string_view type, std::string_view payload,
                               const EnqueueOptions& options = {});

/// Inline mode: calls `Worker::run_once` until nothing is due.
/// @returns how many jobs were run.
/// @throws Error as `Worker::run_once`.
COMMITQ_EXPORT std::size_t drain(Worker& worker);

}  // namespace commitq::testing
