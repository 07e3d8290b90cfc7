// What a handler says, and what becomes of its job.
#include "support/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace commitq::test {
namespace {

/// One worker on queue `q`, whose handler of `t` a test gives.
class WorkerOutcome : public ::testing::Test {
protected:
    /// Runs what is due, on this thread. @returns how many jobs ran.
    std::size_t run(Handler handler, HandlerOptions handler_options = {}, WorkerOptions options = {}) {
        options.queues = {"q"};
        options.observer = recorder;
        Worker worker{database.options(), options};
        worker.on("t", std::move(handler), std::move(handler_options));
        return worker.run_once();
    }

    std::string job(JobId id, std::string_view column) { return database.job(id, column); }
    /// From the claim to the earliest next run, as it stands in the table.
    double seconds_until_next_run(JobId id) {
        return std::stod(job(id, "TIMESTAMPDIFF(MICROSECOND,started_at,available_at)/1e6"));
    }
    void make_due() {
        database.look().run("UPDATE commitq_jobs SET available_at=UTC_TIMESTAMP(6) WHERE state='pending'");
    }
    Event only(std::string_view name) {
        const auto events = recorder->events(name);
        EXPECT_EQ(events.size(), 1U) << name;
        return events.empty() ? Event{} : events.front();
    }
    void expect_sound() { EXPECT_EQ(database.violations(), ""); }

    Database database;
    std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
};

TEST_F(WorkerOutcome, DoneCompletesTheJob) {
    const JobId id = database.enqueue("q", "t", "payload");
    run([](JobContext&) { return Outcome::done(); });
    EXPECT_EQ(job(id, "state"), "completed");
    EXPECT_EQ(job(id, "attempt"), "1");
    EXPECT_EQ(job(id, "lease_until IS NULL"), "1");
    EXPECT_EQ(job(id, "finished_at>=started_at"), "1");
    EXPECT_EQ(job(id, "last_error IS NULL"), "1");
    EXPECT_EQ(recorder->story(id), "claimed started completed");
    expect_sound();
}

TEST_F(WorkerOutcome, RetryWaitsForThePolicysDelay) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) { return Outcome::retry("smtp 451"); }, {.retry = RetryPolicy::fixed(90s)});
    EXPECT_EQ(job(id, "state"), "pending");
    EXPECT_EQ(job(id, "attempt"), "1");
    EXPECT_EQ(job(id, "last_error"), "smtp 451");
    EXPECT_EQ(job(id, "lease_until IS NULL"), "1");
    EXPECT_GE(seconds_until_next_run(id), 90);
    const Event event = only("retried");
    EXPECT_EQ(event.delay, 90s);
    EXPECT_EQ(event.reason, "smtp 451");
    EXPECT_EQ(run([](JobContext&) { return Outcome::done(); }), 0U) << "not before it is due";
    expect_sound();
}

TEST_F(WorkerOutcome, RetryWithADelayOfItsOwnDoesNotAskThePolicy) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) { return Outcome::retry("later", 5min); }, {.retry = RetryPolicy::fixed(90s)});
    EXPECT_EQ(only("retried").delay, 5min);
    EXPECT_GE(seconds_until_next_run(id), 300);
    expect_sound();
}

TEST_F(WorkerOutcome, ARetriedJobRunsAgainWithTheNextAttemptNumber) {
    const JobId id = database.enqueue("q", "t");
    std::string attempts;
    const auto handler = [&](JobContext& context) {
        attempts += std::to_string(context.attempt());
        return context.attempt() < 3 ? Outcome::retry("not yet", 0s) : Outcome::done();
    };
    while (run(handler) > 0) {
        expect_sound();
    }
    EXPECT_EQ(attempts, "123");
    EXPECT_EQ(job(id, "state"), "completed");
    EXPECT_EQ(job(id, "attempt"), "3");
    EXPECT_EQ(job(id, "last_error"), "not yet") << "the last failure stays readable";
    EXPECT_EQ(recorder->story(id), "claimed started retried claimed started retried claimed started completed");
}

TEST_F(WorkerOutcome, AttemptsUsedUpMakeTheJobDead) {
    const JobId id = database.enqueue("q", "t", "{}", {.max_attempts = 3});
    int runs = 0;
    while (run([&](JobContext& context) {
               EXPECT_EQ(context.max_attempts(), 3);
               return Outcome::retry(fmt::format("failure {}", ++runs), 0s);
           }) > 0) {
        expect_sound();
    }
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(job(id, "state"), "dead");
    EXPECT_EQ(job(id, "attempt"), "3");
    EXPECT_EQ(job(id, "last_error"), "failure 3");
    EXPECT_EQ(job(id, "finished_at IS NULL"), "0");
    EXPECT_EQ(recorder->count("retried"), 2U);
    EXPECT_EQ(only("dead").reason, "failure 3");
}

TEST_F(WorkerOutcome, WithOneAttemptTheFirstFailureIsTheEnd) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) { return Outcome::retry("no"); }, {.max_attempts = 1});
    EXPECT_EQ(job(id, "state"), "dead");
    EXPECT_EQ(recorder->story(id), "claimed started dead");
    expect_sound();
}

TEST_F(WorkerOutcome, SnoozeUsesUpNoAttempt) {
    const JobId id = database.enqueue("q", "t", "{}", {.max_attempts = 1});
    std::string attempts;
    for (int i = 0; i < 4; ++i) {
        run([&](JobContext& context) {
            attempts += std::to_string(context.attempt());
            return Outcome::snooze(0s);
        });
        EXPECT_EQ(job(id, "state"), "pending");
        EXPECT_EQ(job(id, "attempt"), "0");
        expect_sound();
    }
    EXPECT_EQ(attempts, "1111");
    run([](JobContext&) { return Outcome::snooze(1h); });
    EXPECT_GE(seconds_until_next_run(id), 3600);
    EXPECT_EQ(recorder->events("snoozed").back().delay, 1h);
    EXPECT_EQ(recorder->count("snoozed"), 5U);
    make_due();
    run([](JobContext&) { return Outcome::done(); });
    EXPECT_EQ(job(id, "state"), "completed");
    EXPECT_EQ(job(id, "attempt"), "1");
    EXPECT_EQ(job(id, "last_error IS NULL"), "1");
    expect_sound();
}

TEST_F(WorkerOutcome, DeadIsTheEndWhateverAttemptsAreLeft) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) { return Outcome::dead("no such user"); });
    EXPECT_EQ(job(id, "state"), "dead");
    EXPECT_EQ(job(id, "attempt"), "1");
    EXPECT_EQ(job(id, "last_error"), "no such user");
    EXPECT_EQ(job(id, "finished_at IS NULL"), "0");
    EXPECT_EQ(only("dead").reason, "no such user");
    EXPECT_EQ(run([](JobContext&) { return Outcome::done(); }), 0U);
    expect_sound();
}

TEST_F(WorkerOutcome, CancelEndsTheJobWithoutAFailure) {
    const JobId with_reason = database.enqueue("q", "t", "with");
    const JobId without = database.enqueue("q", "t", "without");
    run([](JobContext& context) {
        return context.payload() == "with" ? Outcome::cancel("order withdrawn") : Outcome::cancel();
    });
    EXPECT_EQ(job(with_reason, "state"), "cancelled");
    EXPECT_EQ(job(with_reason, "last_error"), "order withdrawn");
    EXPECT_EQ(job(without, "state"), "cancelled");
    EXPECT_EQ(job(without, "last_error IS NULL"), "1");
    EXPECT_EQ(job(without, "finished_at IS NULL"), "0");
    EXPECT_EQ(recorder->count("cancelled"), 2U);
    EXPECT_EQ(recorder->count("dead") + recorder->count("retried"), 0U);
    expect_sound();
}

// --------------------------------------------------------------------------------------------------------- exceptions

TEST_F(WorkerOutcome, AnExceptionIsAFailedAttemptWithItsTextAsTheReason) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) -> Outcome { throw std::runtime_error{"disk full"}; }, {.retry = RetryPolicy::fixed(10s)});
    EXPECT_EQ(job(id, "state"), "pending");
    EXPECT_EQ(job(id, "attempt"), "1");
    EXPECT_EQ(job(id, "last_error"), "disk full");
    EXPECT_EQ(only("retried").delay, 10s);
    expect_sound();
}

TEST_F(WorkerOutcome, C25_AHandlerThatThrowsAnInt_FailsItsJobAndTheWorkerLives) {
    const JobId bad = database.enqueue("q", "t", "throw");
    const JobId good = database.enqueue("q", "t", "good");
    Worker worker{database.options(), {.queues = {"q"}, .observer = recorder}};
    worker.on("t", [](JobContext& context) -> Outcome {
        if (context.payload() == "throw") {
            throw 42;  // NOLINT(hicpp-exception-baseclass)
        }
        return Outcome::done();
    });
    worker.start();
    EXPECT_TRUE(
        eventually([&] { return recorder->count("retried", bad) == 1 && recorder->count("completed", good) == 1; }));
    const JobId later = database.enqueue("q", "t", "good");
    EXPECT_TRUE(eventually([&] { return job(later, "state") == "completed"; }));
    EXPECT_TRUE(worker.stop(60s).clean);
    EXPECT_EQ(job(bad, "state"), "pending");
    EXPECT_EQ(job(bad, "attempt"), "1");
    EXPECT_NE(job(bad, "last_error"), "");
    expect_sound();
}

TEST_F(WorkerOutcome, ALeaseLostOfTheHandlersOwnIsAFailureLikeOthers) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) -> Outcome { throw LeaseLost{{.code = Errc::lease_lost, .message = "of another job"}}; },
        {.max_attempts = 1});
    EXPECT_EQ(job(id, "state"), "dead");
    expect_sound();
}

TEST_F(WorkerOutcome, AnExceptionOnTheLastAttemptMakesTheJobDead) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) -> Outcome { throw std::runtime_error{"again"}; }, {.max_attempts = 1});
    EXPECT_EQ(job(id, "state"), "dead");
    EXPECT_EQ(job(id, "last_error"), "again");
    expect_sound();
}

TEST_F(WorkerOutcome, C38_ErrorTextThatCannotBeStored_IsCleanedAndTheTransitionSucceeds) {
    const std::vector<std::string> texts = {
        "\xf0\x9f\x94\xa5 burning",        // an emoji
        "broken \xff\xfe utf-8 \xe2\x82",  // no valid UTF-8
        std::string(100'000, 'x'),         // far too long
        std::string("nul \0 inside", 12),  // control characters
        "quote ' backslash \\ percent % \n next line",
        std::string(3'000, '\xf0') + "end",
    };
    for (const std::string& text : texts) {
        for (const bool is_final : {false, true}) {
            const JobId id = database.enqueue("q", "t", "{}", {.max_attempts = is_final ? 1 : 2});
            run([&](JobContext&) { return Outcome::retry(text, 1h); });
            EXPECT_EQ(job(id, "state"), is_final ? "dead" : "pending");
            EXPECT_EQ(job(id, "last_error IS NULL"), "0");
            EXPECT_LE(std::stoi(job(id, "CHAR_LENGTH(last_error)")), 1'000);
            expect_sound();
        }
    }
    EXPECT_EQ(database.look().value("SELECT last_error FROM commitq_jobs ORDER BY id LIMIT 1"), texts.front());
}

// ------------------------------------------------------------------------------------------------------- retry policy

struct Attempts {
    std::string name;
    WorkerOptions worker{};
    HandlerOptions handler{};
    std::optional<int> enqueued{};
    int expected = 0;
};

TEST_F(WorkerOutcome, TheNearestSettingOfMaxAttemptsCounts) {
    const std::vector<Attempts> cases = {
        {.name = "default", .expected = 20},
        {.name = "worker", .worker = {.max_attempts = 7}, .expected = 7},
        {.name = "worker's policy", .worker = {.max_attempts = 7, .retry = RetryPolicy::outbox()}, .expected = 8},
        {.name = "handler's policy",
         .worker = {.max_attempts = 7},
         .handler = {.retry = RetryPolicy::outbox()},
         .expected = 8},
        {.name = "handler's policy without a number",
         .worker = {.max_attempts = 7, .retry = RetryPolicy::outbox()},
         .handler = {.retry = RetryPolicy::fixed(1s)},
         .expected = 7},
        {.name = "handler", .handler = {.max_attempts = 3, .retry = RetryPolicy::outbox()}, .expected = 3},
        {.name = "enqueue", .handler = {.max_attempts = 3}, .enqueued = 2, .expected = 2},
        {.name = "enqueue above all", .worker = {.max_attempts = 1}, .enqueued = 10'000, .expected = 10'000},
    };
    for (const Attempts& attempts : cases) {
        const JobId id = database.enqueue("q", "t", "{}", {.max_attempts = attempts.enqueued});
        run(
            [&](JobContext& context) {
                EXPECT_EQ(context.max_attempts(), attempts.expected) << attempts.name;
                return Outcome::retry("again", 1h);
            },
            attempts.handler, attempts.worker);
        EXPECT_EQ(job(id, "max_attempts"), std::to_string(attempts.expected)) << attempts.name;
    }
    expect_sound();
}

TEST_F(WorkerOutcome, TheNearestRetryPolicyCounts) {
    const auto fail = [](JobContext&) { return Outcome::retry("again"); };
    database.enqueue("q", "t");
    run(fail, {}, {.retry = RetryPolicy::fixed(11s)});
    database.enqueue("q", "t");
    run(fail, {.retry = RetryPolicy::fixed(22s)}, {.retry = RetryPolicy::fixed(11s)});
    const auto retried = recorder->events("retried");
    ASSERT_EQ(retried.size(), 2U);
    EXPECT_EQ(retried[0].delay, 11s);
    EXPECT_EQ(retried[1].delay, 22s);
}

TEST_F(WorkerOutcome, TheOutboxPolicyWaitsTwoToTheNMinutesAndGivesUpAfterEightAttempts) {
    const JobId id = database.enqueue("q", "t");
    for (int attempt = 1; attempt <= 8; ++attempt) {
        ASSERT_EQ(run([](JobContext&) { return Outcome::retry("down"); }, {.retry = RetryPolicy::outbox()}), 1U);
        expect_sound();
        make_due();
    }
    std::vector<std::chrono::microseconds> delays;
    for (const Event& event : recorder->events("retried")) {
        delays.push_back(event.delay);
    }
    EXPECT_EQ(delays, (std::vector<std::chrono::microseconds>{2min, 4min, 8min, 16min, 32min, 64min, 128min}));
    EXPECT_EQ(job(id, "state"), "dead");
    EXPECT_EQ(job(id, "attempt"), "8");
}

TEST_F(WorkerOutcome, APolicyThatThrowsOrGoesBackInTimeFallsBackToTheDefault) {
    const std::vector<RetryPolicy> policies = {
        RetryPolicy::custom([](int) -> std::chrono::microseconds { throw 42; }),  // NOLINT(hicpp-exception-baseclass)
        RetryPolicy::custom([](int) -> std::chrono::microseconds { return -5s; }),
    };
    for (const RetryPolicy& policy : policies) {
        database.enqueue("q", "t");
        run([](JobContext&) { return Outcome::retry("again"); }, {.retry = policy});
        expect_sound();
    }
    for (const Event& event : recorder->events("retried")) {
        EXPECT_GE(event.delay, 9s);
        EXPECT_LE(event.delay, 11s);
    }
    EXPECT_EQ(recorder->count("retried"), 2U);
}

TEST_F(WorkerOutcome, ADelayOfAHundredYearsIsCutToTen) {
    const JobId id = database.enqueue("q", "t");
    run([](JobContext&) { return Outcome::retry("patience", std::chrono::years{100}); });
    EXPECT_EQ(job(id, "TIMESTAMPDIFF(YEAR,started_at,available_at) BETWEEN 9 AND 10"), "1");
    expect_sound();
}

// ---------------------------------------------------------------------------------------------- many at once, in a batch

TEST_F(WorkerOutcome, EachJobOfABatchGetsItsOwnOutcome) {
    const std::vector<std::string> kinds = {"done", "retry", "snooze", "dead", "cancel", "throw"};
    std::vector<JobId> ids;
    for (int i = 0; i < 120; ++i) {
        ids.push_back(database.enqueue("q", "t", kinds[static_cast<std::size_t>(i) % kinds.size()]));
    }
    Worker worker{database.options(), {.queues = {"q"}, .observer = recorder}};
    worker.on("t", [](JobContext& context) -> Outcome {
        const std::string kind{context.payload()};
        if (kind == "throw") {
            throw std::runtime_error{"thrown"};
        }
        return kind == "done"     ? Outcome::done()
               : kind == "retry"  ? Outcome::retry("again", 1h)
               : kind == "snooze" ? Outcome::snooze(1h)
               : kind == "dead"   ? Outcome::dead("for good")
                                  : Outcome::cancel("not wanted");
    });
    worker.start();
    EXPECT_TRUE(eventually([&] {
        return database.look().number(
                   "SELECT COUNT(*) FROM commitq_jobs WHERE started_at>'1970-01-02' AND state<>'running'") == 120;
    }));
    EXPECT_TRUE(worker.stop(60s).clean);
    const std::vector<std::string> states = {"completed", "pending", "pending", "dead", "cancelled", "pending"};
    const std::vector<std::string> attempts = {"1", "1", "0", "1", "1", "1"};
    const std::vector<std::string> hooks = {"completed", "retried", "snoozed", "dead", "cancelled", "retried"};
    for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(job(ids[i], "state"), states[i % 6]) << kinds[i % 6];
        EXPECT_EQ(job(ids[i], "attempt"), attempts[i % 6]) << kinds[i % 6];
        EXPECT_EQ(recorder->story(ids[i]), "claimed started " + hooks[i % 6]);
    }
    EXPECT_EQ(recorder->error_text(), "");
    expect_sound();
}

}  // namespace
}  // namespace commitq::test
