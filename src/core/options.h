// Ranges of the public options, in one place.
#pragma once

#include <commitq/queue.h>
#include <commitq/reaper.h>
#include <commitq/worker.h>

#include <chrono>
#include <string_view>

namespace commitq::core {

/// Each throws Error `invalid_argument`, naming the option.
void validate(const WorkerOptions& options);
/// @param type the job type that the options are for; checked too.
void validate(const HandlerOptions& options, std::string_view type);
void validate(const ReaperOptions& options);
void validate(const QueueOptions& options);

/// `WorkerOptions::heartbeat`, or what its 0 stands for.
[[nodiscard]] std::chrono::milliseconds heartbeat_interval(const WorkerOptions& options) noexcept;

}  // namespace commitq::core
