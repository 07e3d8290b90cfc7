#include "core/options.h"

#include "thrown.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

namespace commitq::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr int kLowest = std::numeric_limits<int>::min();
constexpr int kHighest = std::numeric_limits<int>::max();

// Sets one option and leaves the others as they may be.
template <class Options>
struct Change {
    std::string named;  // what a message must name
    std::function<void(Options&)> apply;
};

template <class Options>
void expect_all_valid(const Options& base, const std::vector<Change<Options>>& changes) {
    for (const auto& [named, apply] : changes) {
        SCOPED_TRACE(named);
        Options options = base;
        apply(options);
        EXPECT_NO_THROW(validate(options));
    }
}

template <class Options>
void expect_all_invalid(const std::string& operation, const Options& base,
                        const std::vector<Change<Options>>& changes) {
    for (const auto& [named, apply] : changes) {
        SCOPED_TRACE(named);
        Options options = base;
        apply(options);
        expect_invalid([&] { validate(options); }, operation, named);
    }
}

const WorkerOptions kWorker{.queues = {"orders"}};

TEST(WorkerOptions, AllowDefaultsAndLimits) {
    using O = WorkerOptions;
    expect_all_valid<O>(kWorker, {
                                     {"defaults", [](O&) {}},
                                     {"queues",
                                      [](O& o) {
                                          o.queues = {"A", "a", "b"};
                                      }},
                                     {"concurrency", [](O& o) { o.concurrency = 1; }},
                                     {"concurrency", [](O& o) { o.concurrency = 1024; }},
                                     {"batch", [](O& o) { o.batch = 1; }},
                                     {"batch", [](O& o) { o.batch = 1000; }},
                                     {"prefetch", [](O& o) { o.prefetch = 0; }},
                                     {"prefetch", [](O& o) { o.prefetch = 10'000; }},
                                     {"lease", [](O& o) { o.lease = 1s; }},
                                     {"lease", [](O& o) { o.lease = 24h; }},
                                     {"heartbeat", [](O& o) { o.heartbeat = 15s; }},
                                     {"heartbeat", [](O& o) { o.heartbeat = 1ms; }},
                                     {"poll_min", [](O& o) { o.poll_min = 1ms; }},
                                     {"poll_max", [](O& o) { o.poll_max = o.poll_min; }},
                                     {"max_attempts", [](O& o) { o.max_attempts = 1; }},
                                     {"max_attempts", [](O& o) { o.max_attempts = 10'000; }},
                                 });
}

TEST(WorkerOptions, RefuseWhatCannotWorkAndNameIt) {
    using O = WorkerOptions;
    expect_all_invalid<O>("worker", kWorker,
                          {
                              {"queues", [](O& o) { o.queues.clear(); }},
                              {"queues",
                               [](O& o) {
                                   o.queues = {"a", "b", "a"};
                               }},
                              {"queue name",
                               [](O& o) {
                                   o.queues = {"a", ""};
                               }},
                              {"queue name", [](O& o) { o.queues = {"a b"}; }},
                              {"prefix", [](O& o) { o.prefix = ""; }},
                              {"prefix", [](O& o) { o.prefix = "a-b"; }},
                              {"concurrency", [](O& o) { o.concurrency = 0; }},
                              {"concurrency", [](O& o) { o.concurrency = 1025; }},
                              {"concurrency", [](O& o) { o.concurrency = kLowest; }},
                              {"batch", [](O& o) { o.batch = 0; }},
                              {"batch", [](O& o) { o.batch = 1001; }},
                              {"prefetch", [](O& o) { o.prefetch = -1; }},
                              {"prefetch", [](O& o) { o.prefetch = 10'001; }},
                              {"prefetch", [](O& o) { o.prefetch = kHighest; }},
                              {"lease", [](O& o) { o.lease = 999ms; }},
                              {"lease", [](O& o) { o.lease = 0ms; }},
                              {"lease", [](O& o) { o.lease = -1s; }},
                              {"lease", [](O& o) { o.lease = 24h + 1ms; }},
                              {"lease", [](O& o) { o.lease = milliseconds::max(); }},
                              {"heartbeat", [](O& o) { o.heartbeat = -1ms; }},
                              {"heartbeat", [](O& o) { o.heartbeat = milliseconds::min(); }},
                              {"poll_min", [](O& o) { o.poll_min = 0ms; }},
                              {"poll_min", [](O& o) { o.poll_min = -5ms; }},
                              {"poll_max", [](O& o) { o.poll_max = o.poll_min - 1ms; }},
                              {"poll_max", [](O& o) { o.poll_max = milliseconds::max(); }},
                              {"max_attempts", [](O& o) { o.max_attempts = 0; }},
                              {"max_attempts", [](O& o) { o.max_attempts = 10'001; }},
                          });
}

// The configuration's part of C22, a lease shorter than the job: there must be room for a renewal that comes late.
TEST(WorkerOptions, C22LeaseBelowTwoHeartbeatsIsRefused) {
    struct Case {
        milliseconds lease;
        milliseconds heartbeat;
        bool valid;
    };
    for (const auto& [lease, heartbeat, valid] :
         {Case{10s, 5s, true}, Case{10s, 5001ms, false}, Case{10s, 10s, false}, Case{10s, 20s, false},
          Case{1001ms, 500ms, true}, Case{1001ms, 501ms, false}, Case{24h, 12h, true},
          Case{10s, milliseconds::max(), false}}) {
        WorkerOptions options = kWorker;
        options.lease = lease;
        options.heartbeat = heartbeat;
        SCOPED_TRACE(heartbeat.count());
        if (valid)
            EXPECT_NO_THROW(validate(options));
        else
            expect_invalid([&] { validate(options); }, "worker", "heartbeat");
    }
}

TEST(WorkerOptions, RenewThreeTimesALeaseUnlessToldOtherwise) {
    WorkerOptions options = kWorker;
    EXPECT_EQ(heartbeat_interval(options), 10s);
    options.lease = 1s;
    EXPECT_EQ(heartbeat_interval(options), 333ms);
    options.heartbeat = 250ms;
    EXPECT_EQ(heartbeat_interval(options), 250ms);
}

TEST(HandlerOptions, HaveRanges) {
    EXPECT_NO_THROW(validate(HandlerOptions{}, "mail.send"));
    EXPECT_NO_THROW(validate(HandlerOptions{.max_attempts = 1, .timeout = 1ms}, "mail.send"));
    EXPECT_NO_THROW(validate(HandlerOptions{.max_attempts = 10'000, .timeout = 24h * 3650}, "mail.send"));
    for (const int attempts : {0, -1, 10'001})
        expect_invalid([&] { validate(HandlerOptions{.max_attempts = attempts}, "t"); }, "on", "max_attempts");
    for (const milliseconds timeout : {-1ms, milliseconds::min(), milliseconds::max()})
        expect_invalid([&] { validate(HandlerOptions{.timeout = timeout}, "t"); }, "on", "timeout");
    for (const std::string type : {"", "a b", "\xc3\xa9"})
        expect_invalid([&] { validate(HandlerOptions{}, type); }, "on", "type name");
}

TEST(ReaperOptions, HaveRanges) {
    using O = ReaperOptions;
    expect_all_valid<O>({}, {
                                {"defaults", [](O&) {}},
                                {"interval", [](O& o) { o.interval = 100ms; }},
                                {"interval", [](O& o) { o.interval = 1h; }},
                                {"grace", [](O& o) { o.grace = 0ms; }},
                                {"grace", [](O& o) { o.grace = 24h; }},
                                {"batch", [](O& o) { o.batch = 1; }},
                                {"batch", [](O& o) { o.batch = 1000; }},
                            });
    expect_all_invalid<O>("reaper", {},
                          {
                              {"prefix", [](O& o) { o.prefix = "`"; }},
                              {"interval", [](O& o) { o.interval = 99ms; }},
                              {"interval", [](O& o) { o.interval = 1h + 1ms; }},
                              {"grace", [](O& o) { o.grace = -1ms; }},
                              {"grace", [](O& o) { o.grace = 24h + 1ms; }},
                              {"batch", [](O& o) { o.batch = 0; }},
                              {"batch", [](O& o) { o.batch = 1001; }},
                          });
}

TEST(QueueOptions, HaveNamesThatNeedNoEscaping) {
    using O = QueueOptions;
    expect_all_valid<O>({}, {
                                {"defaults", [](O&) {}},
                                {"prefix", [](O& o) { o.prefix = std::string(32, 'p'); }},
                                {"database", [](O& o) { o.database = "shop-eu$1"; }},
                                {"max_payload", [](O& o) { o.max_payload = 0; }},
                            });
    expect_all_invalid<O>("queue", {},
                          {
                              {"prefix", [](O& o) { o.prefix = ""; }},
                              {"prefix", [](O& o) { o.prefix = std::string(33, 'p'); }},
                              {"prefix", [](O& o) { o.prefix = "a`; DROP TABLE b; --"; }},
                              {"database", [](O& o) { o.database = "a.b"; }},
                              {"database", [](O& o) { o.database = "a`b"; }},
                          });
}

}  // namespace
}  // namespace commitq::core
