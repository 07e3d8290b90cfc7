// A job's headers as one text, so that the column can be read by people.
#pragma once

#include <commitq/queue.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace commitq::core {

/// The longest text that `encode_headers` may give.
inline constexpr std::size_t kMaxHeaderBytes = 4096;

/// Names 1-64 of `[A-Za-z0-9_.-]`; values valid UTF-8 without control characters; `kMaxHeaderBytes` in all.
/// @throws Error `invalid_argument`, naming the header but never its value.
void check_headers(std::string_view operation, const Headers& headers);

/// One `name: value\n` line for each. @param headers as `check_headers` allows.
[[nodiscard]] std::string encode_headers(const Headers& headers);

/// Reverses `encode_headers`. Anyone may have written the column: lines that `check_headers` would not allow are left
/// out. Never throws, but for memory.
[[nodiscard]] Headers decode_headers(std::string_view text);

}  // namespace commitq::core
