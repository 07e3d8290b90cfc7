#include <core/options.h>
#include <store/lease.h>
#include <worker/engine.h>
#include <worker/loop.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace commitq::worker {
namespace {

using core::Clock;

/// Jobs renewed by one statement.
constexpr std::size_t kRenewals = 1'000;

using Runs = std::vector<std::shared_ptr<Run>>;

/// Those of @p runs whose ids are in @p ids, which are sorted.
Runs with_ids(std::span<const std::shared_ptr<Run>> runs, const std::vector<JobId>& ids) {
    Runs found;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(found),
                 [&](const auto& run) { return std::binary_search(ids.begin(), ids.end(), run->job.id); });
    return found;
}

void renew(Engine& engine, mysql::Session& session, std::span<const std::shared_ptr<Run>> runs) {
    std::vector<JobId> ids;
    std::transform(runs.begin(), runs.end(), std::back_inserter(ids), [](const auto& run) { return run->job.id; });
    const auto sent = Clock::now();
    const store::RenewResult result = store::renew(session, engine.tables, engine.owner, ids, engine.options.lease);
    engine.board.renewed(with_ids(runs, result.renewed), sent + engine.options.lease);
    // Nobody can take these from us any more, however long their handlers run on.
    engine.board.renewed(with_ids(runs, result.completed), Clock::time_point::max());
    for (const auto& run : engine.board.lost(with_ids(runs, result.lost))) {
        engine.tell_lost(*run);
    }
}

/// One row that can't be changed costs its own lease, and not those of all the others.
std::optional<Error> renew_in_halves(Engine& engine, mysql::Session& session,
                                     std::span<const std::shared_ptr<Run>> runs) {
    try {
        renew(engine, session, runs);
        return std::nullopt;
    } catch (const Error& error) {
        if (!mysql::is_refusal(error)) {
            throw;
        }
        session.rollback("heartbeat");
        if (runs.size() == 1) {
            return error;
        }
    }
    auto first = renew_in_halves(engine, session, runs.first(runs.size() / 2));
    auto second = renew_in_halves(engine, session, runs.subspan(runs.size() / 2));
    return first ? std::move(first) : std::move(second);
}

}  // namespace

std::optional<Error> renew_all(Engine& engine, mysql::Session& session) {
    const Runs runs = engine.board.renewable();
    std::optional<Error> refused;
    for (std::size_t first = 0; first < runs.size(); first += kRenewals) {
        auto of_part =
            renew_in_halves(engine, session, std::span{runs}.subspan(first, std::min(kRenewals, runs.size() - first)));
        refused = refused ? std::move(refused) : std::move(of_part);
    }
    return refused;
}

void heartbeat_loop(Engine& engine) noexcept {
    const mysql::ThreadScope thread;
    const auto interval = core::heartbeat_interval(engine.options);
    // Several tries fit into one lease, however long the interval is.
    Steps steps{engine, engine.heartbeat_link, engine.heartbeat_pulse, "heartbeat",
                std::min<std::chrono::milliseconds>(interval / 4, std::chrono::seconds{1})};
    engine.heartbeat_pulse.waits_for("its interval");
    auto next = Clock::now() + interval;
    while (engine.board.wait_heartbeat(next)) {
        const auto began = Clock::now();
        const auto wait = steps.try_once([&] {
            mysql::Session& session = engine.heartbeat_link.session();
            const auto refused = renew_all(engine, session);
            session.execute(store::upsert_worker_sql(engine.tables, engine.row()), "heartbeat");
            if (refused) {
                throw *refused;  // tried again sooner than at the next interval
            }
        });
        next = wait ? Clock::now() + *wait : began + interval;
        if (!wait) {
            engine.heartbeat_pulse.waits_for("its interval");
        }
    }
    steps.try_once([&] {
        engine.heartbeat_link.session().execute(store::delete_worker_sql(engine.tables, engine.owner), "heartbeat");
    });
}

void watch_loop(Engine& engine) noexcept {
    engine.watch_pulse.waits_for("deadlines");
    while (!engine.board.closed()) {
        engine.board.wait_watch();
        for (const auto& run : engine.board.watch(Clock::now())) {
            engine.tell_lost(*run);
        }
    }
}

}  // namespace commitq::worker
