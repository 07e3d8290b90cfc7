// Text as the server can take it, whatever its character set and `sql_mode`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace commitq::core {

/// The longest text that `clean_error_text` returns, in characters.
inline constexpr std::size_t kMaxErrorCharacters = 1000;

/// Two uppercase hexadecimal digits for each byte.
[[nodiscard]] std::string hex(std::string_view bytes);
/// As `hex`, at the end of @p out.
void append_hex(std::string& out, std::string_view bytes);

/// @p text as something that can always be stored: valid UTF-8 (what isn't becomes U+FFFD), control characters except
/// `\n` and `\t` as blanks, at most `kMaxErrorCharacters` with an ellipsis as the last one when cut. Reads no further
/// than it must.
[[nodiscard]] std::string clean_error_text(std::string_view text);

}  // namespace commitq::core
