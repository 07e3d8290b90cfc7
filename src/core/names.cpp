#include "core/names.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace commitq::core {

namespace {

// No <cctype>: it asks the locale.
constexpr bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

constexpr bool is_visible(char c) noexcept { return c >= 0x21 && c <= 0x7e; }

constexpr bool is_schema(char c) noexcept { return is_word(c) || c == '$' || c == '-'; }

template <class Allowed>
void check_name(std::string_view operation, std::string_view what, std::string_view name, std::size_t longest,
                std::string_view rule, Allowed allowed) {
    // The name itself stays out of the message: it is the caller's data, and may be anything.
    if (name.empty() || name.size() > longest)
        throw invalid(operation,
                      fmt::format("the {} must have 1 to {} characters, not {}", what, longest, name.size()));
    const auto bad = std::find_if_not(name.begin(), name.end(), allowed);
    if (bad != name.end())
        throw invalid(operation, fmt::format("the {} must be {}; byte {} is not", what, rule, bad - name.begin() + 1));
}

}  // namespace

Error invalid(std::string_view operation, std::string message) {
    return Error{{.code = Errc::invalid_argument, .operation = std::string{operation}, .message = std::move(message)}};
}

void check_queue_name(std::string_view operation, std::string_view name) {
    check_name(operation, "queue name", name, 64, "printable ASCII without blanks", is_visible);
}

void check_type_name(std::string_view operation, std::string_view name) {
    check_name(operation, "type name", name, 128, "printable ASCII without blanks", is_visible);
}

void check_prefix(std::string_view operation, std::string_view prefix) {
    check_name(operation, "prefix", prefix, 32, "letters, digits and _", is_word);
}

void check_schema_name(std::string_view operation, std::string_view name) {
    if (name.empty()) return;
    check_name(operation, "database name", name, 64, "letters, digits, _, $ and -", is_schema);
}

bool is_ipv6(std::string_view host) {
    in6_addr address{};
    return inet_pton(AF_INET6, std::string{host.substr(0, host.find('%'))}.c_str(), &address) == 1;
}

}  // namespace commitq::core
