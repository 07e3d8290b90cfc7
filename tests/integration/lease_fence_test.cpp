// Only the holder of a job's lease changes it.
#include "support/child.h"
#include "support/recorder.h"

#include <core/random.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/session.h>
#include <store/finish.h>
#include <store/sql.h>

#include <array>
#include <thread>

namespace commitq::test {
namespace {

using store::Ending;
using store::Written;

constexpr std::array kEndings = {Ending::complete, Ending::retry,  Ending::snooze,
                                 Ending::bury,     Ending::cancel, Ending::release};
const std::array<std::string, 6> kStates = {"completed", "pending", "pending", "dead", "cancelled", "pending"};

class LeaseFence : public ::testing::Test {
protected:
    /// A job in its second attempt, held by @p of.
    JobId running(const core::Token& of) {
        const JobId id = database.enqueue("q", "t");
        database.look().run(
            fmt::format("UPDATE commitq_jobs SET state='running',owner={},attempt=2,max_attempts=5,last_error='before',"
                        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6)+INTERVAL 1 MINUTE WHERE id={}",
                        store::token_literal(of), id));
        return id;
    }
    std::string row(JobId id) {
        const auto rows = database.look().rows(fmt::format("SELECT * FROM commitq_jobs WHERE id={}", id));
        std::string text;
        for (const auto& column : rows.at(0)) {
            text += column.value_or("NULL") + "|";
        }
        return text;
    }
    static store::Finish finish_of(JobId id, Ending ending, int attempt = 2) {
        return {.id = id,
                .attempt = attempt,
                .ending = ending,
                .delay = 60s,
                .error = ending == Ending::retry ? "now" : ""};
    }
    std::vector<Written> finish(const std::vector<store::Finish>& jobs) {
        auto written = store::finish(session, tables, owner, jobs);
        EXPECT_EQ(database.violations(), "");
        return written;
    }

    Database database;
    const store::Tables tables{"commitq_"};
    const core::Token owner = core::make_token();
    const core::Token stranger = core::make_token();
    mysql::Session session{database.options(), mysql::Purpose::library};
};

// ------------------------------------------------------------------------------------------------------- the statements

TEST_F(LeaseFence, EveryEndingIsWrittenByTheHolder) {
    for (std::size_t i = 0; i < kEndings.size(); ++i) {
        const JobId id = running(owner);
        EXPECT_EQ(finish({finish_of(id, kEndings[i])}), std::vector{Written::yes});
        EXPECT_EQ(database.job(id, "state"), kStates[i]);
        const bool given_back = kEndings[i] == Ending::snooze || kEndings[i] == Ending::release;
        EXPECT_EQ(database.job(id, "attempt"), given_back ? "1" : "2");
        EXPECT_EQ(database.job(id, "last_error"), kEndings[i] == Ending::retry ? "now" : "before");
    }
}

TEST_F(LeaseFence, NoEndingChangesTheJobOfAnother) {
    for (const Ending ending : kEndings) {
        const JobId id = running(stranger);
        const std::string before = row(id);
        EXPECT_EQ(finish({finish_of(id, ending)}), std::vector{Written::lost});
        EXPECT_EQ(row(id), before);
    }
}

TEST_F(LeaseFence, NoEndingOfAnEarlierAttemptChangesALaterOne) {
    for (const Ending ending : kEndings) {
        const JobId id = running(owner);
        const std::string before = row(id);
        EXPECT_EQ(finish({finish_of(id, ending, 1)}), std::vector{Written::lost});
        EXPECT_EQ(row(id), before);
    }
}

TEST_F(LeaseFence, NoEndingChangesAJobThatSomebodyElseHasEnded) {
    for (const Ending ending : kEndings) {
        if (ending == Ending::release) {
            continue;  // a release keeps no trace of who wrote it, and asks for nothing more than that it isn't running
        }
        for (const std::string state : {"pending", "completed", "dead", "cancelled"}) {
            const JobId id = running(stranger);
            database.look().run(
                fmt::format("UPDATE commitq_jobs SET state='{}',lease_until='1970-01-01',"
                            "finished_at=IF(state='pending','1970-01-01',UTC_TIMESTAMP(6)) WHERE id={}",
                            state, id));
            const std::string before = row(id);
            EXPECT_EQ(finish({finish_of(id, ending)}), std::vector{Written::lost});
            EXPECT_EQ(row(id), before);
        }
    }
}

// The reply got lost, and the statement is sent again: it changes nothing, and the row tells that it was written.
TEST_F(LeaseFence, WritingTheSameAgainIsSeenAsWritten) {
    for (const Ending ending : kEndings) {
        const JobId id = running(owner);
        EXPECT_EQ(finish({finish_of(id, ending)}), std::vector{Written::yes});
        const std::string before = row(id);
        EXPECT_EQ(finish({finish_of(id, ending)}), std::vector{Written::yes});
        EXPECT_EQ(row(id), before);
    }
}

// A handler's transaction completed the job while its failure was about to be written.
TEST_F(LeaseFence, AnotherEndingOfAJobThatTheOwnerHasCompletedIsToldApart) {
    for (const Ending ending : {Ending::retry, Ending::snooze, Ending::bury, Ending::cancel}) {
        const JobId id = running(owner);
        finish({finish_of(id, Ending::complete)});
        const std::string before = row(id);
        EXPECT_EQ(finish({finish_of(id, ending)}), std::vector{Written::completed});
        EXPECT_EQ(row(id), before);
    }
}

TEST_F(LeaseFence, AMixedBatchIsWrittenAsFarAsItIsOurs) {
    std::vector<store::Finish> jobs;
    std::vector<Written> expected;
    for (int i = 0; i < 60; ++i) {
        const bool ours = i % 3 != 0;
        jobs.push_back(
            finish_of(running(ours ? owner : stranger), kEndings[static_cast<std::size_t>(i) % kEndings.size()]));
        expected.push_back(ours ? Written::yes : Written::lost);
    }
    jobs.push_back(finish_of(999'999, Ending::complete));
    expected.push_back(Written::lost);
    EXPECT_EQ(finish(jobs), expected);
    EXPECT_EQ(database.count("running"), 20);
}

TEST_F(LeaseFence, LockedRowsAreLeftForLaterAndTheOthersWritten) {
    const JobId locked = running(owner);
    const JobId free = running(owner);
    const JobId theirs = running(stranger);
    Connection handler = database.connect();
    handler.run("START TRANSACTION");
    handler.run(fmt::format("SELECT * FROM commitq_jobs WHERE id={} FOR UPDATE", locked));
    const std::vector<store::Finish> jobs = {finish_of(locked, Ending::complete), finish_of(free, Ending::complete),
                                             finish_of(theirs, Ending::bury)};
    EXPECT_EQ(store::finish_unlocked(session, tables, owner, jobs),
              (std::vector{Written::locked, Written::yes, Written::lost}));
    EXPECT_EQ(database.violations(), "");
    handler.run("ROLLBACK");
    EXPECT_EQ(store::finish_unlocked(session, tables, owner, jobs),
              (std::vector{Written::yes, Written::yes, Written::lost}));
    EXPECT_EQ(database.violations(), "");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_jobs WHERE state='completed'"), 2);
}

TEST_F(LeaseFence, OnlyTheOwnersOwnCompletionCountsAsCompleted) {
    const JobId ours = running(owner);
    const JobId still_running = running(owner);
    const JobId theirs = running(stranger);
    const JobId failed = running(owner);
    finish({finish_of(ours, Ending::complete), finish_of(failed, Ending::retry)});
    store::finish(session, tables, stranger, std::vector{finish_of(theirs, Ending::complete)});
    const std::vector<store::Finish> asked = {
        finish_of(ours, Ending::complete), finish_of(still_running, Ending::complete),
        finish_of(theirs, Ending::complete), finish_of(failed, Ending::complete), finish_of(ours, Ending::complete, 1)};
    EXPECT_EQ(store::completed_by(session, tables, owner, asked), (std::vector{true, false, false, false, false}));
}

// ------------------------------------------------------------------------------------------------------------- a zombie

/// Runs one job whose handler says `started` and waits for the end of standard input. Exit code 0 if it was told that it
/// lost the job, and of no result.
int zombie(const ChildArguments& arguments) {
    const auto recorder = std::make_shared<Recorder>();
    Gate returned;
    Worker worker{ConnectOptions::from_url(arguments.at(0)),
                  {.queues = {"q"}, .lease = std::chrono::seconds{1}, .reaper = false, .observer = recorder}};
    const std::string how = arguments.at(1);
    worker.on("t", [&](JobContext& job) -> Outcome {
        fmt::print("started\n");
        std::fflush(stdout);
        std::fgetc(stdin);
        if (how == "complete_in") {
            auto tx = job.begin();
            tx.execute("INSERT INTO effects VALUES ('zombie')");
            job.complete_in(tx);
            tx.commit();
        }
        returned.open();
        if (how == "throw") {
            throw std::runtime_error{"zombie"};
        }
        return how == "dead" ? Outcome::dead("zombie") : Outcome::done();
    });
    worker.start();
    if (how != "complete_in" && !returned.wait()) {
        return 1;
    }
    if (!eventually([&] { return recorder->count("lease_lost") > 0; })) {
        return 2;
    }
    const StopReport report = worker.stop(std::chrono::seconds{60});
    const bool told_once = recorder->count("lease_lost") == 1;
    const bool nothing_else = recorder->count("completed") + recorder->count("retried") + recorder->count("dead") == 0;
    return told_once && nothing_else && report.completed == 0 ? 0 : 3;
}
const ChildRole kZombie{"zombie", zombie};

class Zombie : public LeaseFence, public ::testing::WithParamInterface<const char*> {};

TEST_P(Zombie, C20_ZombieOwner_CompletionIsFenced) {
    database.look().run("CREATE TABLE effects (who VARCHAR(20))");
    const JobId id = database.enqueue("q", "t");
    Child child{"zombie", {url_of(database.options()), GetParam()}};
    ASSERT_EQ(child.read_line(), "started");
    child.signal(SIGSTOP);

    Worker heir{database.options(), {.queues = {"q"}, .lease = 1s}};
    heir.on("t", [](JobContext& job) {
        auto tx = job.begin();
        tx.execute("INSERT INTO effects VALUES ('heir')");
        job.complete_in(tx);
        tx.commit();
        return Outcome::done();
    });
    heir.start();
    ASSERT_TRUE(eventually([&] { return database.job(id, "state") == "completed"; }));
    EXPECT_EQ(database.violations(), "");
    const std::string before = row(id);

    child.signal(SIGCONT);
    child.close_input();
    EXPECT_EQ(child.wait(), Ended::with(0));
    EXPECT_EQ(row(id), before) << "the new owner's result stands";
    EXPECT_EQ(database.job(id, "attempt"), "2");
    EXPECT_EQ(database.look().value("SELECT GROUP_CONCAT(who) FROM effects"), "heir");
    EXPECT_TRUE(heir.stop(60s).clean);
    EXPECT_EQ(database.violations(), "");
}

INSTANTIATE_TEST_SUITE_P(Ways, Zombie, ::testing::Values("done", "throw", "dead", "complete_in"),
                         [](const auto& way) { return std::string{way.param}; });

// ------------------------------------------------------------------------------------------------------- a poison job

/// Dies with whatever it runs.
int dies_of_it(const ChildArguments& arguments) {
    Worker worker{ConnectOptions::from_url(arguments.at(0)), {.queues = {"q"}, .max_attempts = 3, .reaper = false}};
    worker.on("t", [](JobContext&) -> Outcome { kill(getpid(), SIGKILL), std::abort(); });
    worker.on("healthy", [](JobContext&) { return Outcome::done(); });
    worker.start();
    std::fgetc(stdin);
    worker.stop(std::chrono::seconds{60});
    return 0;
}
const ChildRole kDiesOfIt{"dies_of_it", dies_of_it};

TEST_F(LeaseFence, C18_APoisonJobThatKillsItsProcess_IsDeadAfterItsAttempts) {
    const JobId id = database.enqueue("q", "t");
    for (int attempt = 1; attempt <= 3; ++attempt) {
        Child child{"dies_of_it", {url_of(database.options())}};
        EXPECT_EQ(child.wait(), Ended::by(SIGKILL));
        EXPECT_EQ(database.job(id, "state"), "running");
        EXPECT_EQ(database.job(id, "attempt"), std::to_string(attempt)) << "counted at the claim";
        EXPECT_EQ(database.violations(), "");
        expire_leases(database);
        const ReapReport report = Reaper{database.options(), {}}.reap_once();
        EXPECT_EQ(report.returned, attempt < 3 ? 1U : 0U);
        EXPECT_EQ(report.dead, attempt < 3 ? 0U : 1U);
        EXPECT_EQ(database.violations(), "");
    }
    EXPECT_EQ(database.job(id, "state"), "dead");
    const JobId healthy = database.enqueue("q", "healthy");
    Child child{"dies_of_it", {url_of(database.options())}};
    EXPECT_TRUE(eventually([&] { return database.job(healthy, "state") == "completed"; }));
    child.close_input();
    EXPECT_EQ(child.wait(), Ended::with(0)) << "it lives";
    EXPECT_EQ(database.job(id, "attempt"), "3");
}

}  // namespace
}  // namespace commitq::test
