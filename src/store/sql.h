// Putting values into statements: numbers, and bytes as hex literals; nothing is ever escaped into text.
#pragma once

#include <commitq/queue.h>
#include <core/random.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>

namespace commitq::store {

/// A name as a literal in the column's character set, so that the index serves the comparison: `_ascii x'6F72'`.
std::string name_literal(std::string_view name);
std::string token_literal(const core::Token& token);
/// `UTC_TIMESTAMP(6) + INTERVAL n MICROSECOND`.
std::string from_now(std::chrono::microseconds delay);
/// `1,2,3`; sorted, so that all statements lock rows in the same order.
std::string id_list(std::span<const JobId> ids);

}  // namespace commitq::store
