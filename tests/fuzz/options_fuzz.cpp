// Names and options: taken exactly when all their fields are as the public headers say, which stands here a second time.
#include "fuzz/check.h"

#include <core/duration.h>
#include <core/enqueue.h>
#include <core/names.h>
#include <core/options.h>
#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace commitq::fuzz {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kDay = 24h;

std::string word_characters() { return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"; }

std::string visible_characters() {
    std::string all;
    for (char c = '!'; c <= '~'; ++c) {
        all += c;
    }
    return all;
}

/// Draws values, most of them near the bounds of what is allowed, and keeps whether all were within.
class Draw {
public:
    Draw(const std::uint8_t* data, std::size_t size) : input_{data, size} {}

    [[nodiscard]] bool all_allowed() const { return allowed_; }
    void allow_only_if(bool condition) { allowed_ = allowed_ && condition; }

    template <class Number>
    Number any() {
        return input_.ConsumeIntegral<Number>();
    }
    bool flip() { return input_.ConsumeBool(); }

    template <class Number>
    Number number(Number low, Number high) {
        const std::array<Number, 6> choice{static_cast<Number>(low - 1),
                                           low,
                                           high,
                                           static_cast<Number>(high + 1),
                                           input_.ConsumeIntegralInRange(low, high),
                                           any<Number>()};
        const Number value = input_.PickValueInArray(choice);
        allow_only_if(value >= low && value <= high);
        return value;
    }

    double real(double low, double high) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        const std::array<double, 8> choice{std::nextafter(low, -kInfinity),
                                           low,
                                           high,
                                           std::nextafter(high, kInfinity),
                                           input_.ConsumeFloatingPointInRange(low, high),
                                           std::bit_cast<double>(any<std::uint64_t>()),
                                           kInfinity,
                                           std::numeric_limits<double>::quiet_NaN()};
        const double value = input_.PickValueInArray(choice);
        allow_only_if(value >= low && value <= high);
        return value;
    }

    template <class Duration>
    Duration duration(Duration low, Duration high) {
        return Duration{number(low.count(), high.count())};
    }

    /// @p shortest to @p longest of @p characters.
    std::string name(std::string_view characters, std::size_t longest, std::size_t shortest = 1) {
        std::string name = flip() ? std::string(input_.ConsumeIntegralInRange<std::size_t>(0, longest + 1), 'x')
                                  : input_.ConsumeRandomLengthString(longest + 1);
        if (flip()) {
            for (char& c : name) {
                c = characters[static_cast<unsigned char>(c) % characters.size()];
            }
        }
        allow_only_if(name.size() >= shortest && name.size() <= longest &&
                      name.find_first_not_of(characters) == std::string::npos);
        return name;
    }

    std::string prefix() { return name(word_characters(), 32); }
    std::string queue() { return name(visible_characters(), 64); }
    std::string type() { return name(visible_characters(), 128); }
    std::optional<int> max_attempts() { return flip() ? std::optional{number(1, 10'000)} : std::nullopt; }

private:
    FuzzedDataProvider input_;
    bool allowed_ = true;
};

template <class Call>
void expect_verdict(const Draw& draw, Call call) {
    const auto error = refusal(call);
    require(error.has_value() != draw.all_allowed(), "options are taken exactly when they are as documented");
    require(!error || error->code() == Errc::invalid_argument, "bad options are an invalid argument");
}

void check_queue(Draw& draw) {
    const std::string name = draw.queue();
    QueueOptions options{.prefix = draw.prefix()};
    options.database = draw.name(word_characters() + "$-", 64, 0);
    expect_verdict(draw, [&] { Queue(name, options); });
}

void check_worker(Draw& draw) {
    WorkerOptions options;
    for (int left = draw.any<std::uint8_t>() % 4; left > 0; --left) {
        options.queues.push_back(draw.queue());
    }
    draw.allow_only_if(!options.queues.empty());
    draw.allow_only_if(std::set<std::string>{options.queues.begin(), options.queues.end()}.size() ==
                       options.queues.size());
    options.prefix = draw.prefix();
    options.concurrency = draw.number(1, 1'024);
    options.batch = draw.number(1, 1'000);
    options.prefetch = draw.number(0, 10'000);
    options.lease = draw.duration<milliseconds>(1s, kDay);
    options.heartbeat = draw.duration(0ms, std::max(options.lease / 2, milliseconds{0}));
    options.poll_min = draw.duration(1ms, kDay);
    options.poll_max = draw.duration(std::clamp(options.poll_min, milliseconds{1}, kDay), kDay);
    options.max_attempts = draw.number(1, 10'000);
    expect_verdict(draw, [&] { core::validate(options); });
    if (draw.all_allowed()) {
        const milliseconds interval = core::heartbeat_interval(options);
        require(interval > 0ms && interval <= options.lease / 2, "leases are renewed in time");
    }
}

void check_handler(Draw& draw) {
    const std::string type = draw.type();
    HandlerOptions options;
    options.max_attempts = draw.max_attempts();
    options.timeout = draw.duration(0ms, std::chrono::duration_cast<milliseconds>(core::kMaxDelay));
    expect_verdict(draw, [&] { core::validate(options, type); });
}

void check_reaper(Draw& draw) {
    ReaperOptions options;
    options.prefix = draw.prefix();
    options.interval = draw.duration<milliseconds>(100ms, 1h);
    options.grace = draw.duration(0ms, kDay);
    options.batch = draw.number(1, 1'000);
    expect_verdict(draw, [&] { core::validate(options); });
}

void check_enqueue(Draw& draw) {
    const std::string type = draw.type();
    EnqueueOptions options;
    options.priority = draw.number(0, 9);
    options.delay = draw.duration(microseconds{0}, core::kMaxDelay);
    options.max_attempts = draw.max_attempts();
    if (draw.flip()) {
        // Years 1677 to 2262: none of them is too late.
        options.at.emplace(std::chrono::system_clock::duration{draw.any<std::chrono::system_clock::rep>()});
        draw.allow_only_if(options.delay == microseconds{0});
        require(core::datetime_literal(*options.at).size() == std::string_view{"2026-11-30 22:01:02.123456"}.size(),
                "a time has a fixed width");
    }
    expect_verdict(draw, [&] { core::check_enqueue("enqueue", type, 5, options, 5); });
    const auto error = refusal([&] { core::check_enqueue("enqueue", type, 6, options, 5); });
    require(error && (error->code() == Errc::too_large) == draw.all_allowed(), "a payload above the limit is refused");
}

void check_delay(Draw& draw, const RetryPolicy& policy) {
    const microseconds delay = policy.delay(draw.any<int>(), draw.real(0.0, 1.0));
    require(delay >= 0us && delay <= core::kMaxDelay, "a retry comes within 10 years");
}

void check_exponential(Draw& draw) {
    const auto base = draw.duration(1us, core::kMaxDelay);
    const double factor = draw.real(1.0, 100.0);
    const auto cap = draw.duration(std::clamp(base, microseconds{1}, core::kMaxDelay), core::kMaxDelay);
    const double jitter = draw.real(0.0, 1.0);
    RetryPolicy policy;
    expect_verdict(draw, [&] { policy = RetryPolicy::exponential(base, factor, cap, jitter); });
    if (draw.all_allowed()) {
        require(policy.delay(1, 0.5) == base, "the first delay is the base");
    }
    check_delay(draw, policy);
}

void check_fixed(Draw& draw) {
    const auto delay = draw.duration(microseconds{0}, core::kMaxDelay);
    RetryPolicy policy;
    expect_verdict(draw, [&] { policy = RetryPolicy::fixed(delay); });
    if (draw.all_allowed()) {
        require(policy.delay(draw.any<int>(), draw.real(0.0, 1.0)) == delay, "a fixed delay stays");
    }
    check_delay(draw, RetryPolicy::custom([delay](int) { return delay; }));
}

}  // namespace
}  // namespace commitq::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace commitq::fuzz;
    constexpr std::array kChecks{check_queue,   check_worker,      check_handler, check_reaper,
                                 check_enqueue, check_exponential, check_fixed};
    Draw draw{data, size};
    kChecks.at(draw.any<std::uint8_t>() % kChecks.size())(draw);
    return 0;
}
