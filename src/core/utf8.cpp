#include "core/utf8.h"

namespace commitq::core {

namespace {

struct Sequence {
    std::size_t length;  // 0: no character starts with this byte
    unsigned low;        // range of the second byte, which is where overlong forms and surrogates show
    unsigned high;
};

// Table 3-7 of the Unicode standard.
constexpr Sequence sequence_of(unsigned lead) noexcept {
    if (lead < 0x80) return {1, 0, 0};
    if (lead < 0xc2) return {0, 0, 0};
    if (lead < 0xe0) return {2, 0x80, 0xbf};
    if (lead == 0xe0) return {3, 0xa0, 0xbf};
    if (lead == 0xed) return {3, 0x80, 0x9f};
    if (lead < 0xf0) return {3, 0x80, 0xbf};
    if (lead == 0xf0) return {4, 0x90, 0xbf};
    if (lead < 0xf4) return {4, 0x80, 0xbf};
    if (lead == 0xf4) return {4, 0x80, 0x8f};
    return {0, 0, 0};
}

}  // namespace

Utf8Step read_utf8(std::string_view text) noexcept {
    const auto byte = [text](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(text[at])); };
    const unsigned lead = byte(0);
    auto [length, low, high] = sequence_of(lead);
    if (length == 0) return {};
    if (length == 1) return {lead, 1, true};
    char32_t code_point = lead & (0x7fU >> length);
    for (std::size_t at = 1; at < length; ++at) {
        if (at == text.size() || byte(at) < low || byte(at) > high) return {0, at, false};
        code_point = (code_point << 6U) | (byte(at) & 0x3fU);
        low = 0x80;
        high = 0xbf;
    }
    return {code_point, length, true};
}

}  // namespace commitq::core
