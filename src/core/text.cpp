#include "core/text.h"

#include "core/utf8.h"

#include <commitq/transaction.h>

#include <algorithm>
#include <array>

namespace commitq {

namespace core {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";     // U+2026

struct Digits {
    char high;
    char low;
};

constexpr auto kDigits = [] {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::array<Digits, 256> table{};
    for (std::size_t byte = 0; byte < table.size(); ++byte) table[byte] = {digits[byte >> 4U], digits[byte & 15U]};
    return table;
}();

}  // namespace

void append_hex(std::string& out, std::string_view bytes) {
    std::size_t at = out.size();
    out.resize(at + 2 * bytes.size());
    char* const data = out.data();
    for (const char c : bytes) {
        const Digits digits = kDigits[static_cast<unsigned char>(c)];
        data[at++] = digits.high;
        data[at++] = digits.low;
    }
}

std::string hex(std::string_view bytes) {
    std::string out;
    append_hex(out, bytes);
    return out;
}

std::string clean_error_text(std::string_view text) {
    std::string out;
    out.reserve(std::min(text.size(), 4 * kMaxErrorCharacters));
    std::size_t last = 0;  // where the last character of `out` starts
    for (std::size_t characters = 0; !text.empty(); ++characters) {
        if (characters == kMaxErrorCharacters) {
            out.resize(last);
            out += kEllipsis;
            break;
        }
        last = out.size();
        const Utf8Step step = read_utf8(text);
        if (!step.valid)
            out += kReplacement;
        else if (is_control(step.code_point) && step.code_point != U'\n' && step.code_point != U'\t')
            out += ' ';
        else
            out += text.substr(0, step.length);
        text.remove_prefix(step.length);
    }
    return out;
}

}  // namespace core

std::string sql_literal(std::string_view text) { return "_utf8mb4 " + sql_bytes_literal(text); }

std::string sql_bytes_literal(std::string_view bytes) {
    std::string out = "x'";
    out.reserve(out.size() + 2 * bytes.size() + 1);
    core::append_hex(out, bytes);
    out += '\'';
    return out;
}

}  // namespace commitq
