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
/// Any bytes: `x'00FF'`.
std::string bytes_literal(std::string_view bytes);
std::string token_literal(const core::Token& token);
/// Text for a utf8mb4 column; must be valid UTF-8.
std::string text_literal(std::string_view text);
/// `UTC_TIMESTAMP(6) + INTERVAL n MICROSECOND`.
std::string from_now(std::chrono::microseconds delay);
/// `1,2,3`; sorted, so that all statements lock rows in the same order.
std::string id_list(std::span<const JobId> ids);

}  // namespace commitq::store
