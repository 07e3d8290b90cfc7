// The jobs that producers enqueue and workers handle.
#pragma once

#include "chaos/dice.h"

#include <string>
#include <string_view>

namespace commitq::chaos {

inline constexpr std::string_view kQueues[] = {"mail", "orders"};

/// A type of job; what its handler does is in worker.cpp.
struct JobType {
    std::string_view name;
    int weight;        ///< How often it is enqueued.
    bool effect;       ///< Uses complete_in.
    int max_attempts;  ///< 0: the worker's.
};

inline constexpr JobType kTypes[] = {
    {.name = "brief", .weight = 500, .effect = false, .max_attempts = 0},
    {.name = "plain", .weight = 300, .effect = false, .max_attempts = 0},
    {.name = "effect", .weight = 200, .effect = true, .max_attempts = 0},
    {.name = "throws", .weight = 30, .effect = false, .max_attempts = 0},
    {.name = "always_throws", .weight = 10, .effect = false, .max_attempts = 3},
    {.name = "snoozes", .weight = 30, .effect = false, .max_attempts = 0},
    {.name = "cancels", .weight = 15, .effect = false, .max_attempts = 0},
    {.name = "gives_up", .weight = 10, .effect = false, .max_attempts = 0},
    {.name = "hangs", .weight = 8, .effect = false, .max_attempts = 0},
    // Long enough that another worker may have the job when a frozen one goes on.
    {.name = "takes_long", .weight = 8, .effect = false, .max_attempts = 0},
    {.name = "ignores_stop", .weight = 6, .effect = false, .max_attempts = 0},
};

const JobType& draw_type(Dice& dice);
/// Bytes of any value that prove themselves; most stand in the job's row, a quarter in the table of payloads.
std::string draw_payload(Dice& dice);
/// Whether draw_payload made these bytes.
bool is_genuine(std::string_view payload);

}  // namespace commitq::chaos
