// What the fuzz targets share: how a broken property is told, and a reading of UTF-8 that isn't the library's.
#pragma once

#include <commitq/error.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace commitq::fuzz {

/// Ends the process unless @p holds; libFuzzer then keeps the input.
inline void require(bool holds, const char* property) {
    if (!holds) {
        std::fprintf(stderr, "broken: %s\n", property);
        std::abort();
    }
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// The Error by which @p call refuses its input; nothing if it takes it. Anything else that it throws ends the process.
template <class Call>
std::optional<Error> refusal(Call call) {
    try {
        call();
    } catch (const Error& error) {
        require(error.code() == Errc::invalid_argument || error.code() == Errc::too_large, "bad input is called so");
        require(error.repeat() == Repeat::never && error.transaction() == TransactionState::intact,
                "bad input leaves the transaction alone");
        return error;
    }
    return std::nullopt;
}

inline std::string utf8(char32_t character) {
    if (character < 0x80) {
        return {static_cast<char>(character)};
    }
    const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    std::string bytes{static_cast<char>((0xFFU << (7 - more)) | (character >> (6 * more)))};
    for (int left = more - 1; left >= 0; --left) {
        bytes += static_cast<char>(0x80U | ((character >> (6 * left)) & 0x3FU));
    }
    return bytes;
}

/// The characters of @p text, if it is UTF-8: decodes without a check, encodes that anew, and compares.
inline std::optional<std::u32string> characters_of(std::string_view text) {
    std::u32string characters;
    while (!text.empty()) {
        const auto lead = static_cast<unsigned char>(text.front());
        const int ones = std::countl_one(lead);
        const std::string_view bytes = text.substr(0, static_cast<std::size_t>(std::max(ones, 1)));
        char32_t character = lead & (0xFFU >> (ones + 1));
        for (const char c : bytes.substr(1)) {
            character = (character << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
        }
        if (character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF) || utf8(character) != bytes) {
            return std::nullopt;
        }
        characters += character;
        text.remove_prefix(bytes.size());
    }
    return characters;
}

/// C0, DEL and C1.
inline bool is_control_character(char32_t c) { return c <= 0x1F || (c >= 0x7F && c <= 0x9F); }

}  // namespace commitq::fuzz
