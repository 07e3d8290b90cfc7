// A worker beside what else a process does: fork, signals, exit.
#include "support/child.h"
#include "support/recorder.h"

#include <gtest/gtest.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace commitq::test {
namespace {

Outcome done(JobContext&) { return Outcome::done(); }

/// In a child role: a failed condition ends the process with its line as the exit code.
#define REQUIRE_OR_EXIT(condition) \
    do {                           \
        if (!(condition)) {        \
            return __LINE__ % 200; \
        }                          \
    } while (false)

// --------------------------------------------------------------------------------------------------------------- fork

int wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/// What a forked child may do with the parent's worker: nothing, but without harm.
int in_the_fork(const ConnectOptions& options, std::unique_ptr<Worker> started, std::unique_ptr<Worker> ran_once,
                std::unique_ptr<Reaper> reaper, const Queue& queue) {
    REQUIRE_OR_EXIT(code_of([&] { started->start(); }) == Errc::wrong_state);
    REQUIRE_OR_EXIT(code_of([&] { started->run_once(); }) == Errc::wrong_state);
    REQUIRE_OR_EXIT(code_of([&] { started->on("other", done); }) == Errc::wrong_state);
    REQUIRE_OR_EXIT(code_of([&] { ran_once->run_once(); }) == Errc::wrong_state);
    REQUIRE_OR_EXIT(code_of([&] { ran_once->start(); }) == Errc::wrong_state);
    REQUIRE_OR_EXIT(code_of([&] { reaper->reap_once(); }) == Errc::wrong_state);
    REQUIRE_OR_EXIT(code_of([&] { reaper->start(); }) == Errc::wrong_state);
    queue.notify();
    started->wake();
    started->stop(std::chrono::seconds{1});
    ran_once->stop(std::chrono::seconds{1});
    started.reset();
    ran_once.reset();
    reaper.reset();
    Worker of_its_own{options, {.queues = {"fork"}}};
    of_its_own.on("t", done);
    REQUIRE_OR_EXIT(of_its_own.run_once() == 1);
    return 0;
}

std::unique_ptr<Worker> g_worker;  // destroyed by exit, in the forks too
bool g_is_fork = false;

int forks(const ChildArguments& arguments) {
    const auto options = ConnectOptions::from_url(arguments.at(0));
    const auto recorder = std::make_shared<Recorder>();
    std::atomic<int> runs{0};
    const Queue queue{"q"};
    g_worker = std::make_unique<Worker>(options, WorkerOptions{.queues = {"q"}, .observer = recorder});
    g_worker->on("t", [&](JobContext&) {
        ++runs;
        return Outcome::done();
    });
    g_worker->follow(queue);
    g_worker->start();
    auto started = std::make_unique<Worker>(options, WorkerOptions{.queues = {"other"}, .observer = recorder});
    started->on("t", done);
    started->start();
    auto ran_once = std::make_unique<Worker>(options, WorkerOptions{.queues = {"other"}, .observer = recorder});
    ran_once->on("t", done);
    ran_once->run_once();
    auto reaper = std::make_unique<Reaper>(options, ReaperOptions{});
    reaper->reap_once();

    Connection db{options};
    for (int i = 0; i < 10; ++i) {
        Queue{"fork"}.enqueue_autocommit(db, "t", "{}");
        if (const pid_t pid = fork(); pid == 0) {
            _exit(in_the_fork(options, std::move(started), std::move(ran_once), std::move(reaper), queue));
        } else {
            REQUIRE_OR_EXIT(wait_for(pid) == 0);
        }
        if (const pid_t pid = fork(); pid == 0) {
            g_is_fork = true;
            std::exit(0);  // NOLINT(concurrency-mt-unsafe): runs destructors of static objects
        } else {
            REQUIRE_OR_EXIT(wait_for(pid) == 0);
        }
        queue.enqueue_autocommit(db, "t", "{}");
        REQUIRE_OR_EXIT(eventually([&] { return runs == i + 1; }));
        REQUIRE_OR_EXIT(ran_once->run_once() == 0);
        REQUIRE_OR_EXIT(reaper->reap_once().returned == 0);
    }
    REQUIRE_OR_EXIT(recorder->error_text().empty());  // no connection was disturbed
    REQUIRE_OR_EXIT(g_worker->stop(std::chrono::seconds{60}).clean);
    return 0;
}
const ChildRole kForks{"forks", forks};

TEST(WorkerProcess, C23_AForkIsRefused_DisturbsNothingOfItsParentsAndIsAnotherOwner) {
    Database database;
    Child child{"forks", {url_of(database.options())}};
    EXPECT_EQ(child.wait(), Ended::with(0));
    EXPECT_EQ(database.count("completed"), 20);
    EXPECT_EQ(database.look().number("SELECT COUNT(DISTINCT owner) FROM commitq_jobs WHERE queue='fork'"), 10)
        << "C23: forks of one process are different owners";
    EXPECT_EQ(database.violations(), "");
}

// ------------------------------------------------------------------------------------------------------------- signals

std::atomic<int> g_alarms{0};

int under_alarms(const ChildArguments& arguments) {
    const auto options = ConnectOptions::from_url(arguments.at(0));
    struct sigaction action {};
    action.sa_handler = [](int) { ++g_alarms; };  // without SA_RESTART: system calls are interrupted
    sigaction(SIGALRM, &action, nullptr);
    const itimerval each_ms{.it_interval = {.tv_sec = 0, .tv_usec = 1'000},
                            .it_value = {.tv_sec = 0, .tv_usec = 1'000}};
    setitimer(ITIMER_REAL, &each_ms, nullptr);

    const auto recorder = std::make_shared<Recorder>();
    std::atomic<int> runs{0};
    Worker worker{options, {.queues = {"q"}, .observer = recorder}};
    worker.on("t", [&](JobContext& job) {
        auto tx = job.begin();
        job.complete_in(tx);
        tx.commit();
        ++runs;
        return Outcome::done();
    });
    worker.start();  // on this thread, which gets the signals
    Worker here{options, {.queues = {"here"}, .batch = 10, .observer = recorder}};
    here.on("t", [&](JobContext&) {
        ++runs;
        return Outcome::done();
    });
    int ran_here = 0;
    REQUIRE_OR_EXIT(eventually([&] {
        ran_here += static_cast<int>(here.run_once());
        return runs == 600;
    }));
    REQUIRE_OR_EXIT(ran_here == 300);
    REQUIRE_OR_EXIT(g_alarms > 0);
    REQUIRE_OR_EXIT(worker.stop(std::chrono::seconds{60}).clean);
    std::fprintf(stderr, "%s", recorder->error_text().c_str());
    REQUIRE_OR_EXIT(recorder->error_text().empty());
    return 0;
}
const ChildRole kUnderAlarms{"under_alarms", under_alarms};

TEST(WorkerProcess, ASignalEveryMillisecondDisturbsNothing) {
    Database database;
    database.enqueue_many("q", "t", 300);
    database.enqueue_many("here", "t", 300);
    Child child{"under_alarms", {url_of(database.options())}};
    EXPECT_EQ(child.wait(), Ended::with(0));
    EXPECT_EQ(database.count("completed"), 600);
    EXPECT_EQ(database.violations(), "");
}

// ---------------------------------------------------------------------------------------------------------------- exit

int leaves_a_handler_behind(const ChildArguments& arguments) {
    const auto started = std::make_shared<Gate>();
    const auto never = std::make_shared<Gate>();
    StopReport report;
    {
        Worker worker{ConnectOptions::from_url(arguments.at(0)), {.queues = {"q"}}};
        worker.on("t", [=](JobContext&) {
            started->open();
            never->wait(std::chrono::hours{1});
            return Outcome::done();
        });
        worker.start();
        REQUIRE_OR_EXIT(started->wait());
        if (arguments.at(1) == "stop") {
            report = worker.stop(std::chrono::milliseconds{500});
            REQUIRE_OR_EXIT(report.abandoned == 1);
            REQUIRE_OR_EXIT(!report.clean);
        }
    }
    return 0;
}
const ChildRole kLeavesAHandlerBehind{"leaves_a_handler_behind", leaves_a_handler_behind};

TEST(WorkerProcess, AProcessEndsCleanlyAlthoughAHandlerNeverReturns) {
    for (const char* way : {"stop", "destructor"}) {
        Database database;
        const JobId id = database.enqueue("q", "t");
        Child child{"leaves_a_handler_behind", {url_of(database.options()), way}};
        EXPECT_EQ(child.wait(), Ended::with(0)) << way;
        EXPECT_EQ(database.job(id, "state"), "running");
        EXPECT_TRUE(eventually([&] { return connections(database).empty(); }));
        expire_leases(database);
        EXPECT_EQ((Reaper{database.options(), {}}.reap_once().returned), 1U);
        EXPECT_EQ(database.violations(), "");
    }
}

}  // namespace
}  // namespace commitq::test

// What the parent's threads held is not freed in a fork, which doesn't have them: that is no leak.
extern "C" int __lsan_is_turned_off();  // NOLINT: the sanitizer's name
extern "C" int __lsan_is_turned_off() { return commitq::test::g_is_fork ? 1 : 0; }
