#include "core/headers.h"

#include "core/names.h"
#include "core/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace commitq::core {

namespace {

constexpr std::string_view kSeparator = ": ";

constexpr bool is_name_character(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
}

bool is_name(std::string_view name) noexcept {
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_name_character);
}

bool is_value(std::string_view value) noexcept {
    while (!value.empty()) {
        const Utf8Step step = read_utf8(value);
        if (!step.valid || is_control(step.code_point)) return false;
        value.remove_prefix(step.length);
    }
    return true;
}

std::size_t encoded_size(std::string_view name, std::string_view value) noexcept {
    return name.size() + kSeparator.size() + value.size() + 1;
}

}  // namespace

void check_headers(std::string_view operation, const Headers& headers) {
    std::size_t total = 0;
    for (const auto& [name, value] : headers) {
        if (!is_name(name)) throw invalid(operation, "a header name must be 1 to 64 letters, digits, _, . and -");
        total += encoded_size(name, value);
        if (total > kMaxHeaderBytes)
            throw invalid(operation, fmt::format("the headers are above {} bytes in all", kMaxHeaderBytes));
        if (!is_value(value))
            throw invalid(operation,
                          fmt::format("the value of header {} must be UTF-8 without control characters", name));
    }
}

std::string encode_headers(const Headers& headers) {
    std::size_t total = 0;
    for (const auto& [name, value] : headers) total += encoded_size(name, value);
    std::string out;
    out.reserve(total);
    for (const auto& [name, value] : headers) {
        out += name;
        out += kSeparator;
        out += value;
        out += '\n';
    }
    return out;
}

Headers decode_headers(std::string_view text) {
    Headers headers;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        const std::string_view name = line.substr(0, colon);
        std::string_view value = line.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        if (is_name(name) && is_value(value)) headers.insert_or_assign(std::string{name}, std::string{value});
    }
    return headers;
}

}  // namespace commitq::core
