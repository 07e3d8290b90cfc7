#include <core/options.h>
#include <store/lease.h>
#include <worker/engine.h>
#include <worker/loop.h>

#include <algorithm>

namespace commitq::worker {
namespace {

using core::Clock;

/// Jobs renewed by one statement.
constexpr std::size_t kRenewals = 1'000;

}  // namespace

void renew_all(Engine& engine, mysql::Session& session) {
    const std::vector<JobId> ids = engine.board.renewable();
    for (std::size_t first = 0; first < ids.size(); first += kRenewals) {
        const auto part = std::span{ids}.subspan(first, std::min(kRenewals, ids.size() - first));
        const auto sent = Clock::now();
        const store::RenewResult result = store::renew(session, engine.tables, engine.owner, part, engine.options.lease);
        engine.board.renewed(result.renewed, sent + engine.options.lease);
        for (const auto& run : engine.board.lost(result.lost)) {
            engine.tell_lost(*run);
        }
    }
}

void heartbeat_loop(Engine& engine) noexcept {
    const mysql::ThreadScope thread;
    const auto interval = core::heartbeat_interval(engine.options);
    // Several tries fit into one lease, however long the interval is.
    Steps steps{engine, engine.heartbeat_link, "heartbeat", std::min<std::chrono::milliseconds>(interval / 4, std::chrono::seconds{1})};
    auto next = Clock::now() + interval;
    while (engine.board.wait_heartbeat(next)) {
        const auto began = Clock::now();
        const auto wait = steps.try_once([&] {
            mysql::Session& session = engine.heartbeat_link.session();
            renew_all(engine, session);
            session.execute(store::upsert_worker_sql(engine.tables, engine.row()), "heartbeat");
        });
        next = wait ? Clock::now() + *wait : began + interval;
    }
    steps.try_once([&] {
        engine.heartbeat_link.session().execute(store::delete_worker_sql(engine.tables, engine.owner), "heartbeat");
    });
}

void watch_loop(Engine& engine) noexcept {
    while (!engine.board.closed()) {
        engine.board.wait_watch();
        for (const auto& run : engine.board.watch(Clock::now())) {
            engine.tell_lost(*run);
        }
    }
}

}  // namespace commitq::worker
