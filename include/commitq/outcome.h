/// @file
/// What a handler says about its job. A value: expected results are not exceptions.
///
///     if (smtp.busy()) return commitq::Outcome::retry("smtp 451");
///     return commitq::Outcome::done();
#pragma once

#include <commitq/export.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace commitq {

/// The result of one run of a handler. A value type.
class COMMITQ_EXPORT Outcome {
public:
    /// The kinds of outcome.
    enum class Kind {
        done,    ///< The job is completed.
        retry,   ///< The attempt failed: try again after the backoff, or dead when attempts are used up.
        snooze,  ///< Not now: again later, without using up an attempt.
        dead,    ///< Will never work: to the dead letters at once.
        cancel,  ///< No longer wanted: ends without being a failure.
    };

    /// The job is completed.
    [[nodiscard]] static Outcome done();
    /// The attempt failed. An exception that leaves the handler means the same, with its `what()` as the reason.
    /// @param reason kept as the job's `last_error`; cleaned to valid UTF-8 and cut to 1,000 characters.
    [[nodiscard]] static Outcome retry(std::string reason);
    /// As above, with a delay of its own in place of the retry policy's; 0 to 10 years, clamped.
    [[nodiscard]] static Outcome retry(std::string reason, std::chrono::microseconds delay);
    /// Runs again after @p delay (0 to 10 years, clamped) and uses up no attempt.
    [[nodiscard]] static Outcome snooze(std::chrono::microseconds delay);
    /// A dead letter at once, whatever attempts are left.
    [[nodiscard]] static Outcome dead(std::string reason);
    /// Ends the job as cancelled.
    [[nodiscard]] static Outcome cancel(std::string reason = {});

    /// Which kind it is.
    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    /// The reason as given, uncleaned.
    [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
    /// The delay of `snooze`, or of a `retry` that has one.
    [[nodiscard]] std::optional<std::chrono::microseconds> delay() const noexcept { return delay_; }

private:
    Outcome(Kind kind, std::string reason, std::optional<std::chrono::microseconds> delay)
        : kind_{kind}, reason_{std::move(reason)}, delay_{delay} {}

    Kind kind_;
    std::string reason_;
    std::optional<std::chrono::microseconds> delay_;
};

}  // namespace commitq
