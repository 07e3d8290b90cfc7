// A process that enqueues: in transactions that commit at once, commit late, are rolled back, or die with the process.
#include "chaos/dice.h"
#include "chaos/traffic.h"
#include "support/child.h"
#include "support/invariants.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

namespace commitq::chaos {
namespace {

using namespace std::chrono_literals;
using test::Connection;

/// One thread: one transaction after the other.
class Producer {
public:
    Producer(ConnectOptions options, Dice dice, bool slow) : options_{std::move(options)}, dice_{dice}, slow_{slow} {}

    void run(const std::atomic<bool>& over) {
        while (!over) {
            try {
                transaction();
                slow_ ? pause(500) : keep_pace();
            } catch (const std::exception&) {  // a fault: this transaction is lost
                db_.reset();
                pause(100);
            }
        }
    }

private:
    void pause(int longest_ms) { std::this_thread::sleep_for(dice_.between(0, longest_ms) * 1ms); }

    /// No faster than the workers of a slow machine can follow, and without pauses where it falls behind by itself.
    void keep_pace() {
        pause(30);
        const auto elapsed = std::chrono::steady_clock::now() - began_;
        const auto planned = std::chrono::nanoseconds{1s} * jobs_ / kJobsPerSecond;
        std::this_thread::sleep_for(std::max<std::chrono::nanoseconds>(planned - elapsed, 0ns));
    }

    void transaction() {
        if (!db_) {
            db_ = std::make_unique<Connection>(options_);
        }
        db_->run("START TRANSACTION");
        for (int steps = dice_.between(1, 3); steps > 0; --steps) {
            enqueue();
            maybe_die();
            if (slow_) {
                pause(1'500);
            }
        }
        if (dice_.once_in(8)) {
            db_->run("ROLLBACK");
            return;
        }
        if (dice_.once_in(kDieOnceIn)) {  // the server will have it, and nobody hears of it
            mysql_send_query(*db_, "COMMIT", 6);
            die();
        }
        db_->run("COMMIT");
    }

    void enqueue() {
        std::vector<NewJob> jobs;
        std::vector<bool> effects;
        for (int count = dice_.once_in(3) ? dice_.between(2, 40) : 1; count > 0; --count) {
            const JobType& type = draw_type(dice_);
            jobs.push_back({.type = std::string{type.name}, .payload = draw_payload(dice_), .options = options(type)});
            effects.push_back(type.effect);
        }
        const Queue& queue = queues_[static_cast<std::size_t>(dice_.between(0, 1))];
        const std::vector<JobId> ids =
            jobs.size() == 1 ? std::vector{queue.enqueue(*db_, jobs[0].type, jobs[0].payload, jobs[0].options)}
                             : queue.enqueue_many(*db_, jobs);
        maybe_die();
        jobs_ += static_cast<long>(jobs.size());
        std::vector<test::ExpectedJob> expected;
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            expected.push_back({.id = ids[i], .payload = jobs[i].payload, .effect = effects[i]});
        }
        db_->run(test::expect_sql(expected));
    }

    EnqueueOptions options(const JobType& type) {
        EnqueueOptions chosen;
        chosen.priority = dice_.once_in(3) ? dice_.between(0, 9) : 5;
        chosen.delay = dice_.once_in(10) ? dice_.between(0, 3'000) * 1ms : 0ms;
        if (type.max_attempts > 0) {
            chosen.max_attempts = type.max_attempts;
        }
        return chosen;
    }

    void maybe_die() {
        if (dice_.once_in(2 * kDieOnceIn)) {
            die();
        }
    }
    static void die() { kill(getpid(), SIGKILL); }

    static constexpr int kDieOnceIn = 1'500;
    static constexpr int kJobsPerSecond = 160;

    ConnectOptions options_;
    Dice dice_;
    bool slow_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    long jobs_ = 0;
    std::unique_ptr<Connection> db_{};
    std::array<Queue, 2> queues_{Queue{std::string{kQueues[0]}}, Queue{std::string{kQueues[1]}}};
};

/// Arguments: URL, seed, number, which start this is. Ends with its standard input.
int produce(const test::ChildArguments& arguments) {
    const auto options = ConnectOptions::from_url(arguments.at(0));
    const auto number = [&](std::size_t i) { return std::stoull(arguments.at(i)); };
    std::atomic<bool> over{false};
    const auto thread = [&](std::uint64_t which) {
        return std::thread{[&, which] {
            Producer{options, Dice{number(1), {100 + number(2), number(3), which}}, which > 0}.run(over);
        }};
    };
    std::thread quick = thread(0);
    std::thread slow = thread(1);
    std::array<char, 16> bytes{};
    while (read(STDIN_FILENO, bytes.data(), bytes.size()) > 0) {
    }
    over = true;
    quick.join();
    slow.join();
    return 0;
}
const test::ChildRole kProduce{"produce", produce};

}  // namespace
}  // namespace commitq::chaos
