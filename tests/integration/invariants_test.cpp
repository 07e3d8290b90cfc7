// The checker itself: it finds nothing in a clean run, and each rule can fail.
#include "support/invariants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <ostream>

namespace commitq::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// One job of each fate, by a real worker, all well.
class CleanRun {
public:
    CleanRun() {
        enqueue();
        Worker worker{database.options(), {.queues = {"q"}, .lease = 1s, .reaper = false}};
        add_handlers(worker);
        while (worker.run_once() > 0) {
        }
        reap_one(worker);
    }

    std::vector<std::string> violations() {
        std::vector<std::string> texts;
        for (const Violation& violation : invariants.violations()) {
            texts.push_back(violation.text);
        }
        return texts;
    }

    Database database;
    Invariants invariants{database};

private:
    void enqueue() {
        Connection db = database.connect();
        db.run("START TRANSACTION");
        for (const char* type : {"done", "effect", "retry", "snooze", "dead", "cancel", "lost"}) {
            const std::string payload = type + kLongPayload;
            const JobId id = Queue{"q"}.enqueue(db, type, payload);
            db.run(expect_sql(
                std::vector<ExpectedJob>{{.id = id, .payload = payload, .effect = type == std::string{"effect"}}}));
        }
        db.run("COMMIT");
        db.run("START TRANSACTION");
        Queue{"q"}.enqueue(db, "done", "never seen");
        db.run("ROLLBACK");
    }

    void add_handlers(Worker& worker) {
        const auto on = [&](const char* type, auto outcome) {
            worker.on(type, [this, outcome](JobContext& job) {
                Connection db = database.connect();
                const auto run = begin_run(db, job);
                const Outcome result = outcome(job);
                db.run(end_run_sql(run));
                return result;
            });
        };
        on("done", [](JobContext&) { return Outcome::done(); });
        on("effect", [](JobContext& job) {
            auto tx = job.begin();
            tx.execute(effect_sql(job));
            job.complete_in(tx);
            tx.commit();
            return Outcome::done();
        });
        on("retry",
           [](JobContext& job) { return job.attempt() == 1 ? Outcome::retry("again", 0ms) : Outcome::done(); });
        on("snooze", [this](JobContext&) { return snoozed++ == 0 ? Outcome::snooze(0ms) : Outcome::done(); });
        on("dead", [](JobContext&) { return Outcome::dead("no"); });
        on("cancel", [](JobContext&) { return Outcome::cancel(); });
    }

    /// Claimed by a worker that is never heard of again, reaped, and done by another.
    void reap_one(Worker& worker) {
        Connection db = database.connect();
        db.run(
            "UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=attempt+1,max_attempts=20,"
            "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE type='lost'");
        if ((Reaper{database.options(), {}}.reap_once().returned) != 1) {
            throw std::runtime_error{"nothing was reaped"};
        }
        db.run("UPDATE commitq_jobs SET type='done' WHERE type='lost'");
        worker.run_once();
    }

    int snoozed = 0;
};

TEST(Invariants, OfACleanRunHold) {
    CleanRun run;
    EXPECT_THAT(run.violations(), IsEmpty());
    EXPECT_EQ(run.database.count("completed"), 5);
    EXPECT_EQ(run.invariants.steps("claim"), 10);
    for (const char* kind : {"retry", "snooze", "bury", "cancel", "reap"}) {
        EXPECT_EQ(run.invariants.steps(kind), 1) << kind;
    }
    EXPECT_EQ(run.invariants.steps("complete"), 5);
}

/// What breaks a rule, by SQL, after a clean run.
struct Broken {
    const char* name;
    std::string rule;
    std::vector<std::string> sql;
    friend std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.name; }
};

class InvariantsBroken : public ::testing::TestWithParam<Broken> {};

TEST_P(InvariantsBroken, IsReported) {
    CleanRun run;
    for (const std::string& sql : GetParam().sql) {
        run.database.look().run(sql);
    }
    EXPECT_THAT(run.violations(), Contains(StartsWith(GetParam().rule + ": job ")));
}

/// The job of that type whose story is to be falsified.
std::string job_of(std::string_view type) {
    return fmt::format("(SELECT MIN(id) FROM commitq_jobs WHERE type='{}')", type);
}

const std::string kStarts = "a run begins while its claim holds, and none after the job is finished";
const std::string kRunOfClaim = "a run belongs to a claim that committed before it, and a claim has one run";
const std::string kHolder = "nobody but the holder of the lease writes a result";
const std::string kEffect = "an effect happens exactly once, and only with the completion";

INSTANTIATE_TEST_SUITE_P(
    Each, InvariantsBroken,
    ::testing::Values(
        Broken{"LostJob", "a committed job is never lost", {"DELETE FROM commitq_jobs WHERE type='cancel'"}},
        Broken{"JobOfARollback",
               "a job of a transaction that did not commit is never seen",
               {"DELETE FROM expected WHERE job=" + job_of("done")}},
        Broken{"RunOfARollback",
               "a job of a transaction that did not commit is never seen",
               {"INSERT INTO runs (job,attempt,account,started_at) VALUES (999,1,'a',UTC_TIMESTAMP(6))"}},
        Broken{"Payload",
               "a payload is the bytes that were given",
               {"UPDATE commitq_payloads SET payload=CONCAT('X',SUBSTRING(payload,2)) LIMIT 1"}},
        Broken{"LostPayload", "a payload is the bytes that were given", {"DELETE FROM commitq_payloads LIMIT 1"}},
        Broken{"Transition",
               "only legal transitions",
               {"UPDATE commitq_jobs SET state='pending' WHERE type='dead'",
                "UPDATE commitq_jobs SET state='cancelled' WHERE type='dead'"}},
        Broken{"ClaimWithoutAttempt",
               "only legal transitions",
               {"UPDATE commitq_jobs SET state='pending' WHERE type='dead'",
                "UPDATE commitq_jobs SET state='running' WHERE type='dead'"}},
        Broken{"OwnerStolen", "only legal transitions", {"UPDATE commitq_jobs SET owner=REPEAT('y',16) LIMIT 1"}},
        Broken{"LeftCompleted",
               "nothing leaves a final state",
               {"UPDATE commitq_jobs SET state='pending' WHERE type='effect'"}},
        Broken{"LeftCancelled",
               "nothing leaves a final state",
               {"UPDATE commitq_jobs SET state='pending' WHERE type='cancel'"}},
        Broken{"MissingStep",
               "each step begins where the one before ended",
               {"DELETE FROM history WHERE was='pending' LIMIT 1"}},
        Broken{"ChangedUnseen",
               "a job stands where its last step ended",
               {"DELETE FROM history WHERE becomes='completed' LIMIT 1"}},
        Broken{"Attempts",
               "attempts are the claims that committed, less those given back",
               {"UPDATE commitq_jobs SET attempt=attempt+1 WHERE type='done' LIMIT 1"}},
        Broken{"ReapedEarly",
               "no lease is reaped before it has run out",
               {"UPDATE history SET lease_was=at + INTERVAL 1 MICROSECOND WHERE was='running' AND "
                "owner=REPEAT('\\0',16)"}},
        Broken{"WrittenByAnother", kHolder, {"UPDATE history SET account='another' WHERE becomes='completed' LIMIT 1"}},
        Broken{"RetriedByAnother",
               kHolder,
               {"UPDATE history SET account='another' WHERE was='running' AND becomes='pending' AND owner=owner_was "
                "LIMIT 1"}},
        Broken{"RenewedByAnother",
               "nobody but the holder of the lease renews it",
               {"INSERT INTO history (job,was,becomes,attempt_was,attempt,owner_was,owner,lease_was,at,account)"
                " SELECT job,becomes,becomes,attempt,attempt,owner,owner,lease_was,at,'another' FROM history"
                " WHERE becomes='running' LIMIT 1"}},
        Broken{"BuriedEarly",
               "the reaper buries a job after its last attempt, and never before",
               {"UPDATE history SET becomes='dead' WHERE was='running' AND owner=REPEAT('\\0',16)"}},
        Broken{"NotBuried",
               "the reaper buries a job after its last attempt, and never before",
               {"UPDATE commitq_jobs SET max_attempts=1 WHERE last_error LIKE 'lease expired%'"}},
        Broken{"RunWithoutClaim",
               kRunOfClaim,
               {"INSERT INTO runs (job,attempt,account,started_at) VALUES (" + job_of("done") +
                ",7,'a',UTC_TIMESTAMP(6))"}},
        Broken{"TwoRunsOfAClaim",
               kRunOfClaim,
               {"INSERT INTO runs (job,attempt,account,started_at,ended_at)"
                " SELECT job,attempt,account,started_at,ended_at FROM runs LIMIT 1"}},
        Broken{"RunBeforeItsClaim", kRunOfClaim, {"UPDATE runs SET started_at=started_at - INTERVAL 1 HOUR LIMIT 1"}},
        Broken{"RunAfterTheEnd", kStarts, {"UPDATE runs SET started_at=UTC_TIMESTAMP(6) LIMIT 1"}},
        Broken{
            "RunAfterTheEndAndFrozenBefore",
            kStarts,
            {"UPDATE runs SET started_at=UTC_TIMESTAMP(6) LIMIT 1",
             "INSERT INTO freezes SELECT account,UTC_TIMESTAMP(6) - INTERVAL 2 HOUR,UTC_TIMESTAMP(6) - INTERVAL 1 HOUR"
             " FROM runs"}},
        Broken{"TwoRunsAfterTheEndInOneFreeze",
               kStarts,
               {"UPDATE runs SET started_at=UTC_TIMESTAMP(6) LIMIT 2",
                "INSERT INTO freezes SELECT DISTINCT account,UTC_TIMESTAMP(6) - INTERVAL 1 HOUR,UTC_TIMESTAMP(6) FROM "
                "runs"}},
        Broken{"CompletedWithoutARun",
               "a completed job has a run of its last attempt that ended and had begun before",
               {"DELETE FROM runs LIMIT 1"}},
        Broken{"CompletedBeforeTheRunEnded",
               "a completed job has a run of its last attempt that ended and had begun before",
               {"UPDATE runs SET ended_at=NULL LIMIT 1"}},
        Broken{"EffectTwice", kEffect, {"INSERT INTO effects SELECT * FROM effects"}},
        Broken{"EffectLost", kEffect, {"DELETE FROM effects"}},
        Broken{"EffectOfAnEarlierAttempt", kEffect, {"UPDATE effects SET attempt=attempt+1"}},
        Broken{"EffectWithoutCompletion", kEffect, {"UPDATE commitq_jobs SET state='dead' WHERE type='effect'"}},
        Broken{"EffectNotExpected", kEffect, {"INSERT INTO effects VALUES (999,1)"}},
        Broken{"Complaint", "no handler complains", {complain_sql(1, "something is odd")}},
        Broken{"Columns",
               "only a running job has a lease",
               {"UPDATE commitq_jobs SET lease_until=UTC_TIMESTAMP(6) WHERE type='dead'"}}),
    [](const auto& of) { return std::string{of.param.name}; });

TEST(Invariants, ALeaseIsRenewedByItsHolder) {
    CleanRun run;
    Connection db = run.database.connect();
    const JobId id = run.database.enqueue("other", "t");
    db.run(expect_sql(std::vector<ExpectedJob>{{.id = id, .payload = "{}"}}));
    db.run(
        "UPDATE commitq_jobs SET state='running',owner=REPEAT('x',16),attempt=1,max_attempts=20,"
        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6) WHERE queue='other'");
    db.run("UPDATE commitq_jobs SET lease_until=UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE queue='other'");
    EXPECT_THAT(run.violations(), IsEmpty());
    db.run("UPDATE history SET account='another' WHERE was='running' AND becomes='running'");
    EXPECT_THAT(run.violations(), ElementsAre(StartsWith("nobody but the holder of the lease renews it: job ")));
}

TEST(Invariants, AHandlerMayStartLateInAProcessThatWasFrozen) {
    CleanRun run;
    run.database.look().run("UPDATE runs SET started_at=UTC_TIMESTAMP(6),ended_at=UTC_TIMESTAMP(6) WHERE job=" +
                            job_of("cancel"));
    EXPECT_THAT(run.violations(), Contains(StartsWith(kStarts)));
    run.database.look().run(
        "INSERT INTO freezes SELECT DISTINCT account,UTC_TIMESTAMP(6) - INTERVAL 1 HOUR,UTC_TIMESTAMP(6) FROM runs");
    EXPECT_THAT(run.violations(), IsEmpty());
}

}  // namespace
}  // namespace commitq::test
