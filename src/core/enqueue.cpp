#include "core/enqueue.h"

#include "core/duration.h"
#include "core/headers.h"
#include "core/names.h"
#include "core/range.h"

#include <fmt/format.h>

#include <algorithm>

namespace commitq::core {

namespace {

using std::chrono::days;
using std::chrono::microseconds;
using std::chrono::sys_days;
using std::chrono::sys_time;

constexpr sys_days kFirstDay = std::chrono::year{1000} / 1 / 1;
constexpr sys_days kLastDay = std::chrono::year{9999} / 12 / 31;

void check_due_time(std::string_view operation, const EnqueueOptions& options) {
    if (options.delay < microseconds{0} || options.delay > kMaxDelay)
        throw invalid(operation, "delay must be 0 to 10 years");
    if (!options.at) return;
    if (options.delay != microseconds{0}) throw invalid(operation, "delay and at exclude each other");
    if (std::chrono::floor<days>(*options.at) > kLastDay)
        throw invalid(operation, "at must not be after the year 9999");
}

}  // namespace

void check_enqueue(std::string_view operation, std::string_view type, std::size_t payload_size,
                   const EnqueueOptions& options, std::size_t max_payload) {
    check_type_name(operation, type);
    check_range(operation, "priority", options.priority, 0, 9);
    check_due_time(operation, options);
    if (options.max_attempts) check_range(operation, "max_attempts", *options.max_attempts, 1, kMaxAttempts);
    check_headers(operation, options.headers);
    if (payload_size > max_payload)
        throw Error{
            {.code = Errc::too_large,
             .operation = std::string{operation},
             .message = fmt::format("the payload has {} bytes, above the limit of {}", payload_size, max_payload)}};
}

std::string datetime_literal(std::chrono::system_clock::time_point time) {
    return datetime_text(std::chrono::floor<microseconds>(time));
}

std::string datetime_text(sys_time<microseconds> time) {
    time = std::clamp(time, sys_time<microseconds>{kFirstDay},
                      sys_time<microseconds>{kLastDay + days{1}} - microseconds{1});
    const auto day = std::chrono::floor<days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{time - day};
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", int{date.year()}, unsigned{date.month()},
                       unsigned{date.day()}, clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                       clock.subseconds().count());
}

}  // namespace commitq::core
