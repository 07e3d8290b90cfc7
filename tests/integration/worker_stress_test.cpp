// Many at once: each job is handled once, and nobody gets into another's way. On a server of their own, whose counters say
// whether there was a deadlock or a lock wait timeout.
#include "support/child.h"
#include "support/private_server.h"
#include "support/recorder.h"

#include <core/random.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <store/sql.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace commitq::test {
namespace {

/// Deadlocks and lock wait timeouts that the server has seen.
class LockTroubles {
public:
    explicit LockTroubles(Database& database) : database_{database} {
        database.look().run("SET GLOBAL innodb_monitor_enable='lock_deadlocks'");
        database.look().run("SET GLOBAL innodb_monitor_enable='lock_timeouts'");
        before_ = count();
    }
    long since() { return count() - before_; }

private:
    long count() {
        return database_.look().number(
            fmt::format("SELECT SUM(COUNT) FROM information_schema.INNODB_METRICS WHERE NAME IN"
                        " ('lock_deadlocks','lock_timeouts') AND {} HAVING COUNT(*)=2",
                        database_.is_mariadb() ? "ENABLED=1" : "STATUS='enabled'"));
    }
    Database& database_;
    long before_ = 0;
};

/// A file of counters that several processes share.
class SharedCounters {
public:
    SharedCounters(const std::string& path, std::size_t count) : size_{count * sizeof(std::atomic<unsigned>)} {
        const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(size_)) != 0) {
            throw std::runtime_error{"no shared file"};
        }
        memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (memory_ == MAP_FAILED) {
            throw std::runtime_error{"no shared memory"};
        }
    }
    SharedCounters(const SharedCounters&) = delete;
    SharedCounters& operator=(const SharedCounters&) = delete;
    ~SharedCounters() { munmap(memory_, size_); }
    std::atomic<unsigned>& operator[](std::size_t index) {
        return static_cast<std::atomic<unsigned>*>(memory_)[index];  // NOLINT: zeroed memory of the file
    }

private:
    std::size_t size_;
    void* memory_ = nullptr;
};

constexpr int kJobs = 20'000;

/// Counts each job's runs in the shared file, until standard input ends. Exit code 0 if there was no error at all.
int counts_runs(const ChildArguments& arguments) {
    SharedCounters runs{arguments.at(1), kJobs + 1};
    const auto recorder = std::make_shared<Recorder>();
    Worker worker{ConnectOptions::from_url(arguments.at(0)), {.queues = {"q"}, .concurrency = 8, .observer = recorder}};
    worker.on("t", [&](JobContext& job) {
        ++runs[job.id()];
        return Outcome::done();
    });
    worker.start();
    std::fgetc(stdin);
    const bool clean = worker.stop(std::chrono::seconds{60}).clean;
    fmt::print(stderr, "{}", recorder->error_text());
    return clean && recorder->errors().empty() && recorder->count("lease_lost") == 0 ? 0 : 1;
}
const ChildRole kCountsRuns{"counts_runs", counts_runs};

TEST(WorkerStress, TwoProcessesOfEightHandlersRunTwentyThousandJobsOnceEach) {
    const PrivateServer server;
    Database database{server.options()};
    LockTroubles troubles{database};
    const std::string path = ::testing::TempDir() + database.name();
    SharedCounters runs{path, kJobs + 1};
    std::vector<std::unique_ptr<Child>> workers;
    for (int i = 0; i < 2; ++i) {
        workers.push_back(std::make_unique<Child>("counts_runs", ChildArguments{url_of(database.options()), path}));
    }
    for (int i = 0; i < kJobs / 1'000; ++i) {
        database.enqueue_many("q", "t", 1'000);  // while they work
    }
    EXPECT_TRUE(eventually([&] { return database.count("completed") == kJobs; }, 200s));
    for (auto& worker : workers) {
        worker->close_input();
        EXPECT_EQ(worker->wait(), Ended::with(0));
    }
    unlink(path.c_str());
    int wrong = 0;
    for (std::size_t id = 1; id <= kJobs; ++id) {
        wrong += runs[id] == 1 ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_jobs WHERE attempt<>1"), 0);
    EXPECT_EQ(troubles.since(), 0);
    EXPECT_EQ(database.violations(), "");
}

// C5: twelve workers claim, renew and complete while reapers run all the time and have much to do.
TEST(WorkerStress, C5_TheReaperBesideTwelveWorkers_DeadlocksWithNobody) {
    constexpr int kLive = 3'000;
    constexpr int kOrphans = 3'000;
    const PrivateServer server;
    Database database{server.options()};
    for (int i = 0; i < 6; ++i) {
        database.enqueue_many("q", "t", (kLive + kOrphans) / 6);
    }
    database.look().run(fmt::format(
        "UPDATE commitq_jobs SET state='running',owner={},attempt=1,max_attempts=20,started_at=UTC_TIMESTAMP(6),"
        "lease_until=UTC_TIMESTAMP(6)+INTERVAL id*1000 MICROSECOND WHERE id%2=0",
        store::token_literal(core::make_token())));
    LockTroubles troubles{database};
    const auto recorder = std::make_shared<Recorder>();
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < 12; ++i) {
        auto& worker = workers.emplace_back(std::make_unique<Worker>(
            database.options(),
            WorkerOptions{.queues = {"q"}, .concurrency = 2, .heartbeat = 100ms, .observer = recorder}));
        worker->on("t", [](JobContext& job) {
            return job.attempt() == 1 && job.id() % 10 == 1 ? Outcome::retry("once more", 0s) : Outcome::done();
        });
        worker->start();
    }
    std::atomic<bool> over{false};
    std::atomic<std::size_t> reaped{0};
    std::vector<std::thread> reapers;
    for (int i = 0; i < 3; ++i) {
        reapers.emplace_back([&] {
            Reaper reaper{database.options(), {.batch = 50}};
            while (!over) {
                reaped += reaper.reap_once().returned;
            }
        });
    }
    EXPECT_TRUE(eventually([&] { return database.count("completed") == kLive + kOrphans; }, 200s));
    over = true;
    for (std::thread& reaper : reapers) {
        reaper.join();
    }
    for (auto& worker : workers) {
        EXPECT_TRUE(worker->stop(60s).clean);
    }
    EXPECT_EQ(reaped + recorder->returned(), static_cast<std::size_t>(kOrphans));
    EXPECT_EQ(recorder->error_text(), "");
    EXPECT_EQ(recorder->count("lease_lost"), 0U);
    EXPECT_EQ(troubles.since(), 0);
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
