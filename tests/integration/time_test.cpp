// One clock counts, the server's, and it counts in UTC: no other clock and no time zone makes a difference.
#include "support/clock_shift.h"
#include "support/database.h"
#include "support/private_server.h"

#include <commitq/testing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

namespace commitq::test {
namespace {

using namespace std::chrono;

/// The server's time, read by a connection of the test's.
system_clock::time_point server_now(Database& database) {
    return system_clock::time_point{
        microseconds{database.look().number("SELECT TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6))")}};
}

// ------------------------------------------------------------------------------------------------ another clock

class WorkersClock : public ::testing::TestWithParam<seconds> {};

TEST_P(WorkersClock, C30_IsWrong_NothingRunsEarlyAndWhatIsDueRuns) {
    Database database;
    const ClockShift wrong{GetParam()};
    ASSERT_GT(abs(system_clock::now() - server_now(database)), 5min) << "the clock of this process is not shifted";

    const JobId later = database.enqueue("q", "t", "later", {.priority = 0, .delay = 5min});
    database.enqueue("q", "t", "now");
    std::atomic<int> ran{0};
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [&](JobContext& job) {
        EXPECT_EQ(job.payload(), "now");
        ++ran;
        return Outcome::done();
    });
    EXPECT_EQ(testing::drain(worker), 1U);

    Worker started{database.options(), {.queues = {"q"}}};
    started.on("t", [&](JobContext& job) {
        EXPECT_NE(job.payload(), "later");
        ++ran;
        return Outcome::done();
    });
    started.start();
    database.enqueue("q", "t", "now");
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 2; }));
    database.enqueue("q", "t", "now");  // claimed by a worker that has seen the later one
    EXPECT_TRUE(eventually([&] { return database.count("completed") == 3; }));
    EXPECT_TRUE(started.stop(10s).clean);
    EXPECT_EQ(ran, 3);
    EXPECT_EQ(database.job(later, "state"), "pending");
    EXPECT_EQ(database.violations(), "");
}

TEST_P(WorkersClock, C30_IsWrong_NothingIsReapedEarlyAndWhatHasExpiredIs) {
    Database database;
    const ClockShift wrong{GetParam()};
    ASSERT_GT(abs(system_clock::now() - server_now(database)), 5min) << "the clock of this process is not shifted";
    const JobId held = database.enqueue("q", "t", "held");
    const JobId expired = database.enqueue("q", "t", "expired");
    database.look().run("INSERT INTO commitq_queues (queue,created_at) VALUES ('q',UTC_TIMESTAMP(6))");
    database.look().run(
        "UPDATE commitq_jobs SET state='running',owner=x'01',attempt=1,max_attempts=3,"
        "started_at=UTC_TIMESTAMP(6),lease_until=UTC_TIMESTAMP(6)+INTERVAL 5 MINUTE");
    database.look().run(fmt::format("UPDATE commitq_jobs SET lease_until=UTC_TIMESTAMP(6) WHERE id={}", expired));
    Reaper reaper{database.options(), {}};
    EXPECT_EQ(reaper.reap_once().returned, 1U);
    EXPECT_EQ(database.job(held, "state"), "running");
    EXPECT_EQ(database.job(expired, "state"), "pending");
    EXPECT_EQ(database.job(expired, "available_at<=UTC_TIMESTAMP(6)"), "1");
    EXPECT_EQ(database.violations(), "");
}

TEST_P(WorkersClock, C30_IsWrong_LeasesRetriesAndRowsHaveTheServersTime) {
    Database database;
    const ClockShift wrong{GetParam()};
    ASSERT_GT(abs(system_clock::now() - server_now(database)), 5min) << "the clock of this process is not shifted";
    const JobId id = database.enqueue("q", "t");
    Worker worker{database.options(), {.queues = {"q"}, .lease = 60s}};
    worker.on("t", [&](JobContext& job) {
        EXPECT_LE(job.created_at(), server_now(database));
        EXPECT_EQ(database.job(id, "lease_until>UTC_TIMESTAMP(6) AND lease_until<=UTC_TIMESTAMP(6)+INTERVAL 60 SECOND"),
                  "1");
        return Outcome::retry("later", 1h);
    });
    EXPECT_EQ(testing::drain(worker), 1U);
    EXPECT_EQ(database.job(id,
                           "available_at>UTC_TIMESTAMP(6)+INTERVAL 55 MINUTE"
                           " AND available_at<=UTC_TIMESTAMP(6)+INTERVAL 1 HOUR"),
              "1");
    EXPECT_EQ(database.job(id, "created_at<=started_at AND started_at<=UTC_TIMESTAMP(6)"), "1");
}

INSTANTIATE_TEST_SUITE_P(By, WorkersClock, ::testing::Values(seconds{10min}, seconds{-10min}, seconds{24h * 400}),
                         [](const auto& test) {
                             return fmt::format("{}{}Minutes", test.param < 0s ? "Minus" : "",
                                                std::abs(duration_cast<minutes>(test.param).count()));
                         });

// ------------------------------------------------------------------------------------------------ time zones

TEST(TimeZones, C31_EnqueueAtPlusFive_WorkAtUtc_NoDifference) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    const auto at = time_point_cast<microseconds>(server_now(database)) + 1h;
    const auto text = [](system_clock::time_point time) {
        const auto day = floor<days>(time);
        const hh_mm_ss clock{floor<microseconds>(time - day)};
        const year_month_day date{day};
        return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", int{date.year()}, unsigned{date.month()},
                           unsigned{date.day()}, clock.hours().count(), clock.minutes().count(),
                           clock.seconds().count(), clock.subseconds().count());
    };
    std::size_t now = 0;
    for (const char* zone : {"+00:00", "+05:00", "-12:00", "+13:00", "SYSTEM"}) {
        SCOPED_TRACE(zone);
        db.run(fmt::format("SET SESSION time_zone = '{}'", zone));
        db.run("START TRANSACTION");
        const JobId at_once = queue.enqueue(db, "t", "now");
        const JobId delayed = queue.enqueue(db, "t", "later", {.delay = 30min});
        const JobId absolute = queue.enqueue(db, "t", "later", {.at = at});
        db.run("COMMIT");
        ++now;
        EXPECT_EQ(
            database.job(at_once, "created_at<=UTC_TIMESTAMP(6) AND created_at>UTC_TIMESTAMP(6)-INTERVAL 10 MINUTE"),
            "1");
        EXPECT_EQ(database.job(delayed,
                               "available_at>UTC_TIMESTAMP(6)+INTERVAL 20 MINUTE"
                               " AND available_at<=UTC_TIMESTAMP(6)+INTERVAL 30 MINUTE"),
                  "1");
        EXPECT_EQ(database.job(absolute, "available_at"), text(at));
        // People look at the rows through sessions of any zone too.
        EXPECT_EQ(db.value(fmt::format("SELECT available_at FROM commitq_jobs_view WHERE id={}", absolute)), text(at));
    }
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [](JobContext& job) {
        EXPECT_EQ(job.payload(), "now");
        return Outcome::done();
    });
    EXPECT_EQ(testing::drain(worker), now);
    EXPECT_EQ(database.violations(), "");
}

/// A server that lives in Central Europe: its SYSTEM zone, and with it the default of each session, changes to and from
/// daylight-saving time.
class EuropeanServer {
public:
    EuropeanServer() {
        setenv("TZ", kZone, 1);  // NOLINT(concurrency-mt-unsafe): before any thread of this test
        server_ = std::make_unique<PrivateServer>();
        unsetenv("TZ");  // NOLINT(concurrency-mt-unsafe)
    }
    [[nodiscard]] const ConnectOptions& options() const { return server_->options(); }

private:
    static constexpr const char* kZone = "CET-1CEST,M3.5.0,M10.5.0/3";
    std::unique_ptr<PrivateServer> server_;
};

TEST(TimeZones, C31_AcrossADaylightSavingChange_NoDifference) {
    const EuropeanServer server;
    Database database{server.options()};
    Connection db = database.connect();
    ASSERT_EQ(db.value("SELECT FROM_UNIXTIME(1774746000)"), "2026-03-29 03:00:00")
        << "the server's zone has summer time";
    ASSERT_EQ(db.value("SELECT FROM_UNIXTIME(1774745999)"), "2026-03-29 01:59:59");

    const Queue queue{"q"};
    // Half an hour before and after the hour that doesn't exist, and around the one that comes twice.
    for (const sys_seconds change : {sys_days{2026y / 3 / 29} + 1h, sys_days{2026y / 10 / 25} + 1h}) {
        for (const minutes from_change : {-90min, -60min, -30min, 0min, 30min, 60min}) {
            const sys_seconds moment = change + from_change;
            SCOPED_TRACE(moment.time_since_epoch().count());
            db.run(fmt::format("SET SESSION timestamp = {}.25", moment.time_since_epoch().count()));
            db.run("START TRANSACTION");
            const JobId id = queue.enqueue(db, "t", "x", {.delay = 1h});
            const JobId absolute = queue.enqueue(db, "t", "x", {.at = moment + 90min});
            db.run("COMMIT");
            const auto since_epoch = [&](JobId job, const char* column) {
                return database.job(job, fmt::format("TIMESTAMPDIFF(MICROSECOND,'1970-01-01',{})", column));
            };
            const auto micros = [](auto time) { return std::to_string(microseconds{time.time_since_epoch()}.count()); };
            EXPECT_EQ(since_epoch(id, "created_at"), micros(moment + 250ms));
            EXPECT_EQ(since_epoch(id, "available_at"), micros(moment + 1h + 250ms));
            EXPECT_EQ(since_epoch(absolute, "available_at"), micros(moment + 90min));
        }
    }
    // A worker of that server, whose own sessions are UTC, runs what is due and leaves the rest.
    database.look().run("DELETE FROM commitq_jobs");
    Connection now = database.connect();
    queue.enqueue_autocommit(now, "t", "now");
    queue.enqueue_autocommit(now, "t", "later", {.delay = 30min});
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [](JobContext& job) {
        EXPECT_EQ(job.payload(), "now");
        return Outcome::done();
    });
    EXPECT_EQ(testing::drain(worker), 1U);
    EXPECT_EQ(database.count("pending"), 1);
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------------ what is stored

TEST(StoredTimes, C32_RoundingAndTheYear2038_EveryTimeIsADatetimeWithMicroseconds) {
    Database database;
    EXPECT_EQ(
        database.look().value("SELECT GROUP_CONCAT(CONCAT(table_name,'.',column_name,' ',column_type))"
                              " FROM information_schema.columns WHERE table_schema=DATABASE()"
                              " AND (column_type LIKE 'timestamp%' OR column_type LIKE 'date%' OR column_type LIKE"
                              " 'time%') AND column_type<>'datetime(6)' AND table_name NOT LIKE '%\\_view'"),
        "");
    EXPECT_GE(database.look().number("SELECT COUNT(*) FROM information_schema.columns WHERE table_schema=DATABASE() AND"
                                     " column_type='datetime(6)'"),
              10);
}

TEST(StoredTimes, C32_AFractionIsNotRoundedIntoTheFuture) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    for (const std::string_view fraction : {"000001", "499999", "500000", "999999"}) {
        db.run(fmt::format("SET SESSION timestamp = 1700000000.{}", fraction));
        const JobId id = queue.enqueue_autocommit(db, "t", "x");
        EXPECT_EQ(database.job(id, "available_at"), fmt::format("2023-11-14 22:13:20.{}", fraction));
        EXPECT_EQ(database.job(id, "created_at"), fmt::format("2023-11-14 22:13:20.{}", fraction));
    }
}

TEST(StoredTimes, C32_AJobIsDueAsSoonAsItIsCommitted) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    for (int i = 0; i < 50; ++i) {
        queue.enqueue_autocommit(db, "t", "x");
        ASSERT_EQ(worker.run_once(), 1U) << i;
    }
}

TEST(StoredTimes, C32_TimesAfter2038AreKeptAndRunNoEarlier) {
    Database database;
    Connection db = database.connect();
    const Queue queue{"q"};
    const JobId id = queue.enqueue_autocommit(db, "t", "x", {.at = sys_days{2038y / 1 / 19} + 3h + 14min + 8s + 1us});
    EXPECT_EQ(database.job(id, "available_at"), "2038-01-19 03:14:08.000001");
    const JobId last = queue.enqueue_autocommit(db, "t", "x", {.at = system_clock::time_point::max()});
    EXPECT_EQ(database.job(last, "YEAR(available_at)>=2200"), "1");
    const JobId longest = queue.enqueue_autocommit(db, "t", "x", {.delay = hours{24} * 3'650});
    EXPECT_EQ(database.job(longest, "TIMESTAMPDIFF(DAY,created_at,available_at)"), "3650");
    Worker worker{database.options(), {.queues = {"q"}}};
    worker.on("t", [](JobContext&) { return Outcome::done(); });
    EXPECT_EQ(worker.run_once(), 0U);
}

}  // namespace
}  // namespace commitq::test
