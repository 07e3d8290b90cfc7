#include <worker/claim_plan.h>
#include <worker/engine.h>
#include <worker/loop.h>

#include <algorithm>
#include <span>

namespace commitq::worker {
namespace {

using core::Clock;

/// Payload bytes that one claim takes on, so that large payloads don't fill the memory.
constexpr std::size_t kBytesPerClaim = std::size_t{16} << 20U;

store::ClaimResult claim_up_to(Engine& engine, mysql::Session& session, const ClaimPlan::Target& target, int limit) {
    std::vector<JobId> not_these = engine.board.not_to_claim();
    engine.refusals.add_to(not_these, Clock::now());
    return store::claim(session, engine.tables, engine.claimant,
                        {.queue = engine.options.queues[target.queue],
                         .priority = target.priority,
                         .from = target.from,
                         .limit = limit,
                         .byte_budget = kBytesPerClaim,
                         .not_these = not_these,
                         .only_if_best = target.only_if_best});
}

/// One of the next @p limit jobs is refused: takes those before it one by one, and leaves it out from now on.
store::ClaimResult claim_before_refused(Engine& engine, mysql::Session& session, const ClaimPlan::Target& target,
                                        int limit) {
    store::ClaimResult all{.jobs = {}, .last_available_at = {}, .more = true};
    for (int i = 0; i < limit; ++i) {
        try {
            store::ClaimResult one = claim_up_to(engine, session, target, 1);
            if (one.jobs.empty()) {
                break;
            }
            all.jobs.push_back(std::move(one.jobs.front()));
            all.last_available_at = std::move(one.last_available_at);
        } catch (const store::JobRefused& refused) {
            session.rollback("claim");
            engine.report("claim", refused);
            engine.refusals.leave_out(refused.id(), Clock::now());
            all.more = !engine.refusals.full();
            break;
        } catch (const Error& error) {
            if (all.jobs.empty()) {
                throw;
            }
            engine.report("claim", error);  // what was claimed before is ours all the same
            engine.claim_link.recover(error);
            break;
        }
    }
    return all;
}

}  // namespace

store::ClaimResult claim_from(Engine& engine, mysql::Session& session, const ClaimPlan::Target& target, int limit) {
    try {
        return claim_up_to(engine, session, target, limit);
    } catch (const Error& error) {
        if (!mysql::is_refusal(error)) {
            throw;
        }
        session.rollback("claim");
    }
    return claim_before_refused(engine, session, target, limit);
}

namespace {

class Claimer {
public:
    explicit Claimer(Engine& engine)
        : engine_{engine},
          plan_{engine.options.queues.size(), engine.options.order},
          steps_{engine, engine.claim_link, engine.claim_pulse, "claim", std::chrono::seconds{2}},
          idle_{engine.options.poll_min, engine.options.poll_max} {}

    void run() {
        while (const int wanted = wait_wanted()) {
            bool found = false;
            if (const auto wait = steps_.try_once([&] { found = claim_announced(wanted) || claim(wanted); })) {
                engine_.board.wait_idle(Clock::now() + *wait);
            } else if (found) {
                idle_.reset();
            } else {
                wait_for_work();
            }
        }
        release_ready();
    }

private:
    int wait_wanted() {
        engine_.claim_pulse.waits_for("room for jobs");
        return engine_.board.wait_wanted();
    }

    /// After a wake: claims where the announced job most likely is, which saves a look, the longer part of the way to it.
    bool claim_announced(int wanted) {
        const auto target = std::exchange(woken_, false) ? plan_.likely() : std::nullopt;
        return target && claim_at(engine_.claim_link.session(), *target, wanted);
    }

    /// Claims once, from the best place that has something. @returns false when nothing was found anywhere.
    bool claim(int wanted) {
        mysql::Session& session = engine_.claim_link.session();
        const bool looks = plan_.should_look(Clock::now());
        if (looks) {
            look(session);
        }
        if (claim_known(session, wanted)) {
            return true;
        }
        if (looks) {
            look_owed_ = false;
            return false;
        }
        look_owed_ = !plan_.may_look(Clock::now());
        if (look_owed_) {
            plan_.assume();
        } else {
            look(session);
        }
        return claim_known(session, wanted);
    }

    void look(mysql::Session& session) {
        const auto began = Clock::now();
        const auto found = store::look(session, engine_.tables, engine_.options.queues);
        const auto ended = Clock::now();
        plan_.looked(found, ended, ended - began);
    }

    bool claim_known(mysql::Session& session, int wanted) {
        while (const auto target = plan_.next()) {
            if (claim_at(session, *target, wanted)) {
                return true;
            }
        }
        return false;
    }

    bool claim_at(mysql::Session& session, const ClaimPlan::Target& target, int wanted) {
        const auto sent = Clock::now();  // before the server sets the lease: the local deadline is the earlier one
        store::ClaimResult result = claim_from(engine_, session, target, wanted);
        plan_.claimed(target, result.last_available_at, result.more);
        if (result.better) {
            plan_.found_better(target, *result.better);
        }
        if (result.jobs.empty()) {
            return false;
        }
        hand_over(std::move(result.jobs), sent + engine_.options.lease);
        return true;
    }

    void hand_over(std::vector<store::ClaimedJob> jobs, Clock::time_point deadline) {
        std::vector<std::shared_ptr<Run>> runs;
        runs.reserve(jobs.size());
        for (store::ClaimedJob& job : jobs) {
            runs.push_back(engine_.make_run(std::move(job)));
        }
        for (const auto& run : runs) {
            engine_.tell_claimed(*run);
        }
        for (const auto& older : engine_.board.add(std::move(runs), deadline)) {
            engine_.tell_lost(*older);
        }
    }

    void wait_for_work() {
        auto until = Clock::now() + idle_.next(steps_.random().uniform());
        if (look_owed_) {  // a wake, perhaps, that came too early for the next look: it must not be lost
            until = std::min(until, plan_.next_look());
        }
        if (const auto due = plan_.next_due()) {
            until = std::min(until, std::max(*due, Clock::now()));
        }
        engine_.claim_pulse.waits_for(look_owed_ ? "its next look" : "work");
        woken_ = engine_.board.wait_idle(until);
    }

    /// At shutdown: what never started goes back without having used an attempt.
    void release_ready() {
        if (const auto runs = engine_.board.take_ready(); !runs.empty()) {
            release(runs);
        }
    }

    void release(std::span<const std::shared_ptr<Run>> runs) {
        std::vector<store::Finish> finishes;
        finishes.reserve(runs.size());
        for (const auto& run : runs) {
            finishes.push_back({.id = run->job.id, .attempt = run->job.attempt, .ending = store::Ending::release});
        }
        std::vector<store::Written> results;
        int refusals = 0;
        // Tried once at the least, however short the deadline of the shutdown is.
        while (const auto wait = steps_.try_once([&] {
            results = store::finish(engine_.claim_link.session(), engine_.tables, engine_.owner, finishes);
        })) {
            if (steps_.refused() && runs.size() > 1) {  // one of them is to blame: the others must not suffer
                release(runs.first(runs.size() / 2));
                return release(runs.subspan(runs.size() / 2));
            }
            if (steps_.refused() && ++refusals == kRefusals) {
                engine_.board.settle(runs.front());  // its lease runs out
                engine_.tell_lost(*runs.front());
                ++engine_.abandoned;
                return;
            }
            if (!engine_.board.wait_closing(Clock::now() + *wait)) {
                return;
            }
        }
        for (std::size_t i = 0; i < runs.size(); ++i) {
            engine_.board.settle(runs[i]);
            if (results[i] == store::Written::yes) {
                ++engine_.released;
                engine_.tell_released(*runs[i]);
            }
        }
    }

    static constexpr int kRefusals = 3;

    Engine& engine_;
    ClaimPlan plan_;
    Steps steps_;
    core::Backoff idle_;
    bool woken_ = false;      ///< The last wait ended by a wake.
    bool look_owed_ = false;  ///< The last look was put off, since looks are slow just now.
};

}  // namespace

void claim_loop(Engine& engine) noexcept {
    const mysql::ThreadScope thread;
    Claimer{engine}.run();
}

}  // namespace commitq::worker
