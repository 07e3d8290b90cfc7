// Chaos: workers and producers, each a process of its own, while everything goes wrong that can, and a check of all jobs
// afterwards. `tests/run chaos` runs it.
//
//     COMMITQ_CHAOS_SEED     what goes wrong, and when; default: another each time
//     COMMITQ_CHAOS_MINUTES  how long; default 3; some more where a busy machine got too little done in them
//
// The last line is `jobs=N faults=N claims=N reaped=N violations=N seed=N`. Fails if there are violations, or, at 3
// minutes or more, if so little happened that this means nothing.
#include "chaos/plan.h"
#include "chaos/server.h"
#include "chaos/slot.h"
#include "support/account.h"
#include "support/child.h"
#include "support/invariants.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace commitq::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using test::Account;
using test::Connection;
using test::Database;
using test::Invariants;
using test::Violation;

constexpr long kLeastJobs = 30'000;
constexpr int kLeastFaults = 60;
constexpr std::uint64_t kMostMinutesMore = 6;  // on a busy machine, until enough has happened
constexpr double kDefaultMinutes = 3;

struct Settings {
    std::uint64_t seed = 0;
    double minutes = kDefaultMinutes;

    static Settings read() {
        Settings settings{.seed = std::random_device{}()};
        if (const char* seed = std::getenv("COMMITQ_CHAOS_SEED")) {  // NOLINT(concurrency-mt-unsafe)
            settings.seed = std::stoull(seed);
        }
        if (const char* minutes = std::getenv("COMMITQ_CHAOS_MINUTES")) {  // NOLINT(concurrency-mt-unsafe)
            settings.minutes = std::stod(minutes);
        }
        return settings;
    }
    [[nodiscard]] std::chrono::milliseconds duration() const {
        return std::chrono::milliseconds{static_cast<long>(minutes * 60'000)};
    }
};

/// What goes wrong, beside everything else.
class Faults {
public:
    Faults(Server& server, const Database& database, std::deque<Slot>& workers, std::deque<Slot>& producers,
           const std::vector<std::string>& worker_accounts)
        : server_{server},
          database_{database},
          workers_{workers},
          producers_{producers},
          worker_accounts_{worker_accounts},
          began_{steady_clock::now()} {}

    /// One lane of the plan, until @p end.
    void run(const Lane& lane, steady_clock::time_point end) {
        try {
            for (const Fault& fault : lane) {
                if (steady_clock::now() + fault.after >= end) {
                    return;
                }
                std::this_thread::sleep_for(fault.after);
                apply(fault);
            }
        } catch (const std::exception& error) {
            const std::scoped_lock lock{mutex_};
            violations_.push_back(fmt::format("the harness failed: {}", error.what()));
        }
    }

    int count() const { return count_; }
    std::vector<std::string> violations() {
        const std::scoped_lock lock{mutex_};
        return violations_;
    }

    void write_freezes(Connection& db) {
        const std::scoped_lock lock{mutex_};
        for (const Freeze& freeze : freezes_) {
            db.run(fmt::format("INSERT INTO freezes VALUES ('{}',{},{})", freeze.account,
                               test::utc_literal(freeze.since), test::utc_literal(freeze.until)));
        }
    }

private:
    struct Freeze {
        std::string account;
        system_clock::time_point since;
        system_clock::time_point until;
    };

    void apply(const Fault& fault) {
        if (!happens(fault)) {
            return;
        }
        ++count_;
        fmt::print("{:6.1f} s  {} {} {} {}\n", std::chrono::duration<double>(steady_clock::now() - began_).count(),
                   to_string(fault.kind), fault.target, fault.lasts, fault.amount);
    }

    /// @returns false when there was nothing that it could happen to.
    bool happens(const Fault& fault) {
        const auto target = static_cast<std::size_t>(fault.target);
        switch (fault.kind) {
            case FaultKind::kill_worker:
                return workers_[target].kill();
            case FaultKind::restart_worker:
                return workers_[target].stop(SIGTERM);
            case FaultKind::freeze_worker:
                return workers_[target].freeze(fault.lasts, [&](system_clock::time_point since) {
                    const std::scoped_lock lock{mutex_};
                    freezes_.push_back({worker_accounts_[target], since, system_clock::now()});
                });
            case FaultKind::kill_producer:
                return producers_[target].kill();
            case FaultKind::kill_server:
                server_.kill();
                return true;
            case FaultKind::read_only:
                server_.set_read_only(true);
                std::this_thread::sleep_for(fault.lasts);
                server_.set_read_only(false);
                return true;
            case FaultKind::kill_connections:
                return kill_connections(fault.amount);
            case FaultKind::lock_jobs:
                return lock_jobs(fault);
        }
        return false;
    }

    bool kill_connections(int most) {
        Connection admin = server_.connect();
        int killed = 0;
        for (const Row& row : admin.rows("SELECT ID FROM INFORMATION_SCHEMA.PROCESSLIST WHERE USER<>'commitq' AND"
                                         " DB IS NOT NULL ORDER BY RAND() LIMIT 100")) {
            if (killed < most && admin.try_run("KILL " + row[0].value_or("0")) == 0) {
                ++killed;
            }
        }
        return killed > 0;
    }

    bool lock_jobs(const Fault& fault) {
        Connection db = server_.connect();
        try {
            db.run("USE " + database_.name());
            db.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
            db.run("START TRANSACTION");
            if (!test::eventually([&] { return lock_some(db, fault.amount); }, 5s)) {
                return false;
            }
            std::this_thread::sleep_for(fault.lasts);
            db.run("ROLLBACK");
            return true;
        } catch (const std::runtime_error&) {
            constexpr unsigned kReadOnly = 1290;
            if (mysql_errno(db) != kReadOnly && db.try_run("DO 0") == 0) {
                throw;
            }
            return false;  // another lane's fault came first
        }
    }

    static bool lock_some(Connection& db, int most) {
        std::string ids;
        for (const Row& row : db.rows(fmt::format("SELECT id FROM commitq_jobs WHERE state IN ('pending','running')"
                                                  " ORDER BY state DESC,RAND() LIMIT {}",
                                                  most))) {
            ids += (ids.empty() ? "" : ",") + row[0].value_or("0");
        }
        return !ids.empty() && !db.rows(fmt::format("SELECT id FROM commitq_jobs FORCE INDEX (PRIMARY) WHERE id IN ({})"
                                                    " AND state IN ('pending','running') FOR UPDATE SKIP LOCKED",
                                                    ids))
                                    .empty();
    }

    Server& server_;
    const Database& database_;
    std::deque<Slot>& workers_;
    std::deque<Slot>& producers_;
    const std::vector<std::string>& worker_accounts_;
    const steady_clock::time_point began_;
    std::atomic<int> count_{0};
    std::mutex mutex_{};
    std::vector<Freeze> freezes_{};
    std::vector<std::string> violations_{};
};

std::vector<std::string> operator+(std::vector<std::string> one, const std::vector<std::string>& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
}

class Chaos {
public:
    explicit Chaos(Settings settings) : settings_{settings} {
        for (int i = 0; i < kWorkers; ++i) {
            Account& account = accounts_.emplace_back(
                database_, fmt::format("w{}", i), test::grants_to("worker", database_) + invariants_.worker_grants());
            worker_accounts_.push_back(account.name());
            workers_.emplace_back("work", fmt::format("worker {}", i), arguments(account, i), false);
        }
        Account& account = accounts_.emplace_back(
            database_, "p", test::grants_to("producer", database_) + invariants_.producer_grants());
        for (int i = 0; i < kProducers; ++i) {
            producers_.emplace_back("produce", fmt::format("producer {}", i), arguments(account, i), true);
        }
    }

    int run() {
        fmt::print("seed {}, {} minutes\n", settings_.seed, settings_.minutes);
        Faults faults{server_, database_, workers_, producers_, worker_accounts_};
        do_harm(faults, settings_.seed, settings_.duration());
        for (std::uint64_t more = 1; more <= kMostMinutesMore && !enough(faults); ++more) {
            do_harm(faults, settings_.seed + more, 1min);
        }
        end_producers();
        drain();
        end_workers();
        faults.write_freezes(database_.look());
        return judge(faults);
    }

private:
    [[nodiscard]] test::ChildArguments arguments(const Account& account, int number) const {
        ConnectOptions options = account.options();
        if (number % 2 == 1) {
            options.socket.clear();  // by TCP
        }
        return {test::url_of(options), std::to_string(settings_.seed), std::to_string(number)};
    }

    void tend() {
        for (auto* slots : {&workers_, &producers_}) {
            for (Slot& slot : *slots) {
                slot.tend();
            }
        }
        std::this_thread::sleep_for(20ms);
    }

    /// Keeps processes going until @p done, for @p longest at most.
    template <class Done>
    bool tend_until(Done done, std::chrono::seconds longest) {
        const auto end = steady_clock::now() + longest;
        while (!done()) {
            if (steady_clock::now() > end) {
                return false;
            }
            tend();
        }
        return true;
    }

    void do_harm(Faults& faults, std::uint64_t seed, std::chrono::milliseconds duration) {
        const auto end = steady_clock::now() + duration;
        const std::vector<Lane> plan = make_plan(seed, duration);
        std::atomic<std::size_t> over{0};
        std::vector<std::jthread> lanes;
        for (const Lane& lane : plan) {
            lanes.emplace_back([&] {
                faults.run(lane, end);
                ++over;
            });
        }
        tend_until([&] { return steady_clock::now() >= end && over == plan.size(); }, std::chrono::hours{24});
        lanes.clear();
        [[maybe_unused]] const Connection there = server_.connect();
        database_.look_anew();
    }

    /// Whether so much happened that the result means something; a shorter run is for trying.
    bool enough(const Faults& faults) {
        return settings_.minutes < kDefaultMinutes || (count_jobs() >= kLeastJobs && faults.count() >= kLeastFaults);
    }

    long count_jobs() { return database_.look().number("SELECT COUNT(*) FROM commitq_jobs"); }

    void end_producers() {
        for (Slot& producer : producers_) {
            producer.close();
            producer.stop(0);
        }
        end("producers", producers_);
    }

    void end(std::string_view who, std::deque<Slot>& slots) {
        const auto all_ended = [&] {
            return std::all_of(slots.begin(), slots.end(), [](Slot& slot) { return slot.ended(); });
        };
        if (!tend_until(all_ended, 120s)) {
            violations_.push_back(fmt::format("the {} do not end", who));
        }
    }

    void drain() {
        auto asked = steady_clock::now();
        const auto drained = [&] {
            if (steady_clock::now() - asked < 200ms) {
                return false;
            }
            asked = steady_clock::now();
            return database_.count("pending") + database_.count("running") == 0;
        };
        fmt::print("draining {} jobs\n", database_.count("pending") + database_.count("running"));
        if (tend_until(drained, 180s)) {
            return;
        }
        for (const Row& row : database_.look().rows(
                 "SELECT id,state FROM commitq_jobs WHERE state NOT IN ('completed','dead','cancelled') LIMIT 1000")) {
            const auto job = std::stoull(row[0].value_or("0"));
            undrained_.push_back(
                {.text = fmt::format("a job comes to an end: job {} ({})", job, row[1].value_or("")), .job = job});
        }
    }

    /// Each is started, if it happens not to be: it must be well then, and stop cleanly.
    void end_workers() {
        for (Slot& worker : workers_) {
            if (!tend_until([&] { return worker.stop(SIGUSR1); }, 120s)) {
                violations_.push_back("a worker does not start");
            }
            worker.close();
        }
        end("workers", workers_);
    }

    int judge(Faults& faults) {
        std::vector<Violation> found = undrained_;
        for (const Violation& violation : invariants_.violations()) {
            found.push_back(violation);
        }
        violations_ = std::move(violations_) + faults.violations();
        int count = faults.count();
        for (auto* slots : {&workers_, &producers_}) {
            for (Slot& slot : *slots) {
                violations_ = std::move(violations_) + slot.violations();
                count += slot.deaths();
            }
        }
        print(found);
        for (const std::string& text : violations_) {
            fmt::print("violation: {}\n", text);
        }
        const long jobs = count_jobs();
        const auto violations = found.size() + violations_.size();
        const bool meaningful = enough(faults);
        if (!meaningful) {
            fmt::print("too little happened: at least {} jobs and {} faults are wanted\n", kLeastJobs, kLeastFaults);
        }
        print_states();
        fmt::print("jobs={} faults={} claims={} reaped={} violations={} seed={}\n", jobs, count,
                   invariants_.steps("claim"), invariants_.steps("reap") + invariants_.steps("reap_dead"), violations,
                   settings_.seed);
        return violations == 0 && meaningful ? 0 : 1;
    }

    void print(const std::vector<Violation>& found) {
        std::set<JobId> told;
        for (const Violation& violation : found) {
            fmt::print("violation: {}\n", violation.text);
            if (violation.job != 0 && told.size() < 50 && told.insert(violation.job).second) {
                fmt::print("{}", invariants_.history(violation.job));
            }
        }
    }

    void print_states() {
        std::string text;
        for (const Row& row : database_.look().rows("SELECT state,COUNT(*) FROM commitq_jobs GROUP BY state"
                                                    " UNION ALL SELECT kind,COUNT(*) FROM steps GROUP BY kind")) {
            text += fmt::format("{}{}={}", text.empty() ? "" : " ", row[0].value_or(""), row[1].value_or(""));
        }
        fmt::print("{}\n", text);
    }

    Settings settings_;
    Server server_{};
    Database database_{};
    Invariants invariants_{database_};
    std::deque<Account> accounts_{};
    std::vector<std::string> worker_accounts_{};
    std::deque<Slot> workers_{};
    std::deque<Slot> producers_{};
    std::vector<std::string> violations_{};  ///< Of processes.
    std::vector<Violation> undrained_{};
};

}  // namespace
}  // namespace commitq::chaos

int main(int argc, char** argv) {
    if (const auto code = commitq::test::run_as_child(argc, argv)) {
        return *code;
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
    try {
        return commitq::chaos::Chaos{commitq::chaos::Settings::read()}.run();
    } catch (const std::exception& error) {
        fmt::print(stderr, "chaos: {}\n", error.what());
        return 1;
    }
}
