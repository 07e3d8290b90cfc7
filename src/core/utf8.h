// UTF-8, read strictly: overlong forms, surrogates and anything above U+10FFFF are invalid.
#pragma once

#include <cstddef>
#include <string_view>

namespace commitq::core {

/// What stands at the start of a text.
struct Utf8Step {
    char32_t code_point = 0;  ///< Only when `valid`.
    std::size_t length = 1;   ///< Bytes to step over; for invalid ones what Unicode calls a maximal subpart.
    bool valid = false;       ///< One well-formed character.
};

/// Reads one character. @param text not empty.
[[nodiscard]] Utf8Step read_utf8(std::string_view text) noexcept;

/// C0, DEL and C1.
[[nodiscard]] constexpr bool is_control(char32_t code_point) noexcept {
    return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}

}  // namespace commitq::core
