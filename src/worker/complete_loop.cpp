#include <worker/engine.h>
#include <worker/loop.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace commitq::worker {
namespace {

/// The most results in one statement; enough that its cost is spread thin, few enough that its locks are short.
constexpr std::size_t kMostResults = 500;
/// How long the first result waits for others while handlers are busy.
constexpr auto kLinger = std::chrono::milliseconds{2};
/// How long a result waits whose row another transaction has locked.
constexpr auto kLockedRow = std::chrono::milliseconds{500};

/// A handler that called complete_in decides by its transaction, not by what it returns. What became of it is known, or
/// is read from the server.
enum class Fate { not_used, committed, ask };

Fate fate_of(const Run& run) {
    if (!run.completed_in) {
        return Fate::not_used;
    }
    if (run.committed_in && *run.committed_in) {
        return Fate::committed;
    }
    return Fate::ask;  // the caller's own connection, or a COMMIT in doubt, or rolled back
}

/// Whatever the handler returned, its transaction has completed the job.
void set_completed(store::Finish& finish) {
    finish.ending = store::Ending::complete;
    finish.error.clear();
    finish.delay = {};
}

const Outcome& not_committed() {
    static const Outcome outcome = Outcome::retry("the transaction given to complete_in did not commit");
    return outcome;
}

}  // namespace

std::vector<store::Finish> make_finishes(const std::vector<Finished>& results, core::Random& random) {
    std::vector<store::Finish> finishes;
    finishes.reserve(results.size());
    for (const Finished& result : results) {
        const bool undone = result.run->completed_in && result.outcome.kind() == Outcome::Kind::done;
        finishes.push_back(make_finish(*result.run, undone ? not_committed() : result.outcome, random));
    }
    return finishes;
}

std::vector<store::Written> write_results(Engine& engine, mysql::Session& session, const std::vector<Finished>& results,
                                          std::vector<store::Finish>& finishes, bool only_unlocked) {
    std::vector<store::Written> written(results.size(), store::Written::yes);
    std::vector<std::size_t> to_ask;
    std::vector<std::size_t> to_write;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const Fate fate = fate_of(*results[i].run);
        if (fate == Fate::ask) {
            to_ask.push_back(i);
        } else if (fate == Fate::not_used) {
            to_write.push_back(i);
        } else {
            set_completed(finishes[i]);
        }
    }
    const auto select = [&](const std::vector<std::size_t>& indexes) {
        std::vector<store::Finish> selected;
        selected.reserve(indexes.size());
        for (const std::size_t i : indexes) {
            selected.push_back(finishes[i]);
        }
        return selected;
    };
    bool may_be_locked = only_unlocked;
    if (!to_ask.empty()) {
        const auto completed = store::completed_by(session, engine.tables, engine.owner, select(to_ask));
        for (std::size_t i = 0; i < to_ask.size(); ++i) {
            if (completed[i]) {
                set_completed(finishes[to_ask[i]]);
            } else {
                to_write.push_back(to_ask[i]);
                may_be_locked = true;  // the handler may have left its transaction open: nobody waits for that
            }
        }
    }
    if (!to_write.empty()) {
        const auto selected = select(to_write);
        const auto of_written = may_be_locked ? store::finish_unlocked(session, engine.tables, engine.owner, selected)
                                              : store::finish(session, engine.tables, engine.owner, selected);
        for (std::size_t i = 0; i < to_write.size(); ++i) {
            written[to_write[i]] = of_written[i];
            if (of_written[i] == store::Written::completed) {  // its transaction committed in this very moment
                set_completed(finishes[to_write[i]]);
                written[to_write[i]] = store::Written::yes;
            }
        }
    }
    return written;
}

namespace {

class Completer {
public:
    explicit Completer(Engine& engine)
        : engine_{engine},
          steps_{engine, engine.complete_link, engine.complete_pulse, "complete", std::chrono::seconds{1}} {}

    void run() {
        for (;;) {
            engine_.complete_pulse.waits_for("results");
            std::vector<Finished> results = engine_.board.collect(kMostResults, kLinger);
            if (results.empty()) {
                return;
            }
            write(std::move(results));
        }
    }

private:
    /// Writes until it is written: the handlers have run and must not run again for the sake of an error here.
    void write(std::vector<Finished> results) {
        std::vector<store::Finish> finishes = make_finishes(results, steps_.random());
        bool only_unlocked =
            std::any_of(results.begin(), results.end(), [](const Finished& result) { return result.met_lock; });
        for (int lost = 0;;) {
            std::vector<store::Written> written;
            const auto wait = steps_.try_once([&] {
                written = write_results(engine_, engine_.complete_link.session(), results, finishes, only_unlocked);
            });
            if (!wait) {
                settle(std::move(results), finishes, written);
                return;
            }
            // Above the packet size, many results are refused that are none of them too large, or the server hangs up.
            lost += steps_.last() == Errc::connection_lost ? 1 : 0;
            if ((steps_.refused() || lost == kHangUps) && results.size() > 1) {
                write_in_halves(std::move(results));  // one of them may be to blame: the others must not suffer
                return;
            }
            if (steps_.refused() && ++refused_ >= kRefusals) {
                refused_ = 0;
                abandon(results);
                return;
            }
            only_unlocked = only_unlocked || steps_.last() == Errc::lock_timeout;
            if (!engine_.board.wait_closing(core::Clock::now() + *wait)) {
                return;  // the end of the shutdown's deadline: the leases run out
            }
        }
    }

    void write_in_halves(std::vector<Finished> results) {
        const auto middle = results.begin() + static_cast<std::ptrdiff_t>(results.size() / 2);
        std::vector<Finished> second{std::make_move_iterator(middle), std::make_move_iterator(results.end())};
        results.erase(middle, results.end());
        write(std::move(results));
        write(std::move(second));
    }

    void settle(std::vector<Finished> results, const std::vector<store::Finish>& finishes,
                const std::vector<store::Written>& written) {
        refused_ = 0;
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (written[i] == store::Written::locked) {
                results[i].met_lock = true;
                engine_.board.put_back(std::move(results[i]), kLockedRow);
                continue;
            }
            const bool news = engine_.board.settle(results[i].run);
            if (written[i] == store::Written::yes) {
                engine_.tell_finished(*results[i].run, finishes[i]);
            } else if (news) {
                engine_.tell_lost(*results[i].run);
            }
        }
    }

    /// The server refuses this one result for good: its lease runs out, and the reaper decides.
    void abandon(const std::vector<Finished>& results) {
        for (const Finished& result : results) {
            engine_.board.settle(result.run);
            engine_.tell_lost(*result.run);
        }
    }

    static constexpr int kRefusals = 5;
    static constexpr int kHangUps = 3;

    Engine& engine_;
    Steps steps_;
    int refused_ = 0;
};

}  // namespace

void complete_loop(Engine& engine) noexcept {
    const mysql::ThreadScope thread;
    Completer{engine}.run();
}

}  // namespace commitq::worker
