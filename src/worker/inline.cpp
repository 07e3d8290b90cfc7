// Worker::run_once: one batch on the calling thread.
#include <worker/claim_plan.h>
#include <worker/engine.h>

#include <algorithm>
#include <thread>

namespace commitq::worker {
namespace {

using core::Clock;
using namespace std::chrono_literals;

std::vector<store::ClaimedJob> claim_some(Engine& engine, mysql::Session& session) {
    ClaimPlan plan{engine.options.queues.size(), engine.options.order};
    plan.looked(store::look(session, engine.tables, engine.options.queues), Clock::now(), Clock::duration::zero());
    while (const auto target = plan.next()) {
        store::ClaimResult result = claim_from(engine, session, *target, engine.options.batch);
        if (!result.jobs.empty()) {
            return std::move(result.jobs);
        }
        plan.claimed(*target, {}, result.more);
    }
    return {};
}

/// A handler has left the transaction open that it gave to complete_in.
[[noreturn]] void throw_locked() {
    throw Error{{.code = Errc::lock_timeout,
                 .operation = "complete",
                 .message = "an open transaction holds the job's row",
                 .repeat = Repeat::statement}};
}

/// Writes one result; a lock wait or a deadlock is tried again, since the handler has run.
void write(Engine& engine, mysql::Link& link, const std::shared_ptr<Run>& run, Outcome outcome) {
    core::Random random;
    const std::vector<Finished> results{{.run = run, .outcome = std::move(outcome)}};
    auto finishes = make_finishes(results, random);
    for (int tries = 1;; ++tries) {
        try {
            const auto written = write_results(engine, link.session(), results, finishes, false);
            if (written.front() == store::Written::locked) {
                throw_locked();
            }
            engine.board.settle(run);
            if (written.front() == store::Written::yes) {
                engine.tell_finished(*run, finishes.front());
            } else {
                engine.tell_lost(*run);
            }
            return;
        } catch (const Error& error) {
            engine.report("complete", error);
            link.recover(error);
            if (error.repeat() == Repeat::never || tries == 5) {
                engine.board.settle(run);
                throw;
            }
            std::this_thread::sleep_for(tries * 50ms);
        }
    }
}

}  // namespace

std::size_t run_inline(Engine& engine) {
    mysql::Link& link = engine.claim_link;
    try {
        const auto sent = Clock::now();
        std::vector<std::shared_ptr<Run>> runs;
        for (store::ClaimedJob& job : claim_some(engine, link.session())) {
            runs.push_back(engine.make_run(std::move(job)));
            engine.tell_claimed(*runs.back());
        }
        for (const auto& older : engine.board.add(runs, sent + engine.options.lease)) {
            engine.tell_lost(*older);
        }
        for (const auto& run : engine.board.watch(Clock::now())) {  // what an error left over from an earlier call
            engine.tell_lost(*run);
        }
        auto renew_at = sent + engine.options.lease / 3;
        std::size_t count = 0;
        while (const auto run = engine.board.take_now()) {
            ++count;
            engine.tell_started(*run);
            Outcome outcome = run_handler(*run);
            write(engine, link, run, std::move(outcome));
            if (Clock::now() >= renew_at) {  // there is no heartbeat thread: the rest of the batch waits for this one
                renew_at = Clock::now() + engine.options.lease / 3;
                if (const auto refused = renew_all(engine, link.session())) {
                    engine.report("heartbeat", *refused);
                }
            }
        }
        return count;
    } catch (const Error& error) {
        link.recover(error);
        throw;
    }
}

}  // namespace commitq::worker
