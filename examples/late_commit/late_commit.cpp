// The lost job: why a queue must not read its table by `id > last_seen`.
//
// A row gets its AUTO_INCREMENT id, and its created_at, when it is inserted. Others see it when it is committed. So a
// transaction that takes a small id and commits late shows up *behind* whoever has read on in the meantime, and is never
// read again. Waiting for the missing id doesn't help: a rolled-back transaction leaves the same hole, for ever.
//
// This program brings that about on the real server, with three consumers of the same three transactions:
//   - two that everybody has written once: one goes by id, one by created_at;
//   - commitq's worker, which goes by the state of each row instead.
#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>

#include "../support.h"

using namespace std::chrono_literals;
using examples::execute;

using Letters = std::set<std::string>;

/// A consumer as it is often written by hand: it remembers how far it has read. Its position is the column @p column.
class CursorConsumer {
public:
    CursorConsumer(MYSQL* db, std::string column, std::string start)
        : db_{db}, column_{std::move(column)}, last_seen_{std::move(start)} {}

    void poll() {
        const std::string sql =
            fmt::format("SELECT {0}, letter FROM outbox WHERE {0} > '{1}' ORDER BY {0}", column_, last_seen_);
        for (const commitq::Row& row : examples::query(db_, sql)) {
            last_seen_ = row.at(0).value();
            handled_.insert(row.at(1).value());
        }
    }
    [[nodiscard]] Letters handled() const { return handled_; }
    [[nodiscard]] const std::string& last_seen() const { return last_seen_; }

private:
    MYSQL* db_;
    std::string column_;
    std::string last_seen_;
    Letters handled_;
};

/// commitq's worker beside it.
class CommitqConsumer {
public:
    explicit CommitqConsumer(const commitq::ConnectOptions& options) : worker_{options, {.queues = {"letters"}}} {
        worker_.on("letter", [this](commitq::JobContext& job) {
            const std::scoped_lock lock{mutex_};
            handled_.emplace(job.payload());
            return commitq::Outcome::done();
        });
        worker_.start();
    }
    [[nodiscard]] Letters handled() const {
        const std::scoped_lock lock{mutex_};
        return handled_;
    }

private:
    mutable std::mutex mutex_;
    Letters handled_;
    commitq::Worker worker_;
};

/// One business transaction: writes its letter for either kind of consumer.
void write_letter(MYSQL* db, const commitq::Queue& queue, const std::string& letter) {
    execute(db, "START TRANSACTION");
    execute(db, fmt::format("INSERT INTO outbox (letter) VALUES ('{}')", letter));
    const commitq::JobId job = queue.enqueue(db, "letter", letter);
    fmt::print("  {0} writes its row: id {1}, created_at {2}; and its job: id {3}\n", letter,
               examples::value(db, fmt::format("SELECT id FROM outbox WHERE letter = '{}'", letter)),
               examples::value(db, fmt::format("SELECT created_at FROM outbox WHERE letter = '{}'", letter)), job);
}

Letters without(const Letters& from, const Letters& what) {
    Letters rest;
    std::set_difference(from.begin(), from.end(), what.begin(), what.end(), std::inserter(rest, rest.end()));
    return rest;
}

std::string list(const Letters& letters) {
    return letters.empty() ? "none" : fmt::format("{}", fmt::join(letters, " "));
}

void demonstrate(const commitq::ConnectOptions& options, MYSQL* reader) {
    execute(reader,
            "CREATE TABLE outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, letter VARCHAR(10) NOT NULL, "
            "created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))");
    CursorConsumer by_id{reader, "id", "0"};
    CursorConsumer by_time{reader, "created_at", "1970-01-01"};
    CommitqConsumer by_state{options};
    const auto poll = [&](const Letters& commitq_has) {
        by_id.poll();
        by_time.poll();
        examples::wait_until("commitq's worker handles " + list(commitq_has),
                             [&] { return without(commitq_has, by_state.handled()).empty(); });
        fmt::print("  handled so far    by id: {}    by created_at: {}    by commitq: {}\n", list(by_id.handled()),
                   list(by_time.handled()), list(by_state.handled()));
    };

    const commitq::Queue queue{"letters"};
    const examples::Connection a = examples::connect(options);
    const examples::Connection b = examples::connect(options);
    const examples::Connection c = examples::connect(options);

    fmt::print("1. A, B and C begin, in this order. A takes its time.\n");
    write_letter(a.get(), queue, "A");
    write_letter(b.get(), queue, "B");
    write_letter(c.get(), queue, "C");

    fmt::print("2. B rolls back: nothing will ever come of its ids. C commits. Everybody polls.\n");
    execute(b.get(), "ROLLBACK");
    execute(c.get(), "COMMIT");
    poll({"C"});

    fmt::print("3. A commits. Everybody polls, and polls again.\n");
    execute(a.get(), "COMMIT");
    for (int i = 0; i < 3; ++i) {
        poll({"A", "C"});
    }

    const Letters committed{"A", "C"};
    const Letters lost_by_id = without(committed, by_id.handled());
    const Letters lost_by_time = without(committed, by_time.handled());
    const Letters lost_by_state = without(committed, by_state.handled());
    fmt::print("\ncommitted: {}\n", list(committed));
    fmt::print("  id > {:<34} has lost for ever: {}\n", by_id.last_seen(), list(lost_by_id));
    fmt::print("  created_at > {:<26} has lost for ever: {}\n", by_time.last_seen(), list(lost_by_time));
    fmt::print("  {:<39} has lost: {}\n", "commitq", list(lost_by_state));

    examples::check(lost_by_id == Letters{"A"}, "the cursor on id loses A and nothing else");
    examples::check(lost_by_time == Letters{"A"}, "the cursor on created_at loses A and nothing else");
    examples::check(lost_by_state.empty(), "commitq loses nothing");
    examples::check(by_state.handled() == committed, "commitq runs nothing of the transaction that was rolled back");
}

int main() { return examples::run("late_commit", demonstrate); }
