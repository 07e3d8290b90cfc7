#include "core/range.h"

#include "core/names.h"

#include <fmt/format.h>

namespace commitq::core {

void check_range(std::string_view operation, std::string_view option, std::int64_t value, std::int64_t low,
                 std::int64_t high, std::string_view unit) {
    if (value >= low && value <= high) return;
    const std::string_view blank = unit.empty() ? "" : " ";
    throw invalid(operation, fmt::format("{} must be {} to {}{}{}, not {}", option, low, high, blank, unit, value));
}

}  // namespace commitq::core
