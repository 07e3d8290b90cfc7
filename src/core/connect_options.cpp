#include <commitq/connect_options.h>

#include "core/names.h"
#include "core/range.h"

#include <fmt/format.h>

#include <algorithm>

namespace commitq {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kOperation = "connect";

bool is_charset_character(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

void check_timeout(std::string_view option, milliseconds value) {
    constexpr milliseconds shortest = std::chrono::seconds{1};
    constexpr milliseconds longest = std::chrono::hours{1};
    core::check_range(kOperation, option, value.count(), shortest.count(), longest.count(), "ms");
}

// The client libraries take C strings: what follows a zero byte would be dropped without a word.
void check_no_zero_byte(std::string_view option, std::string_view value) {
    if (value.find('\0') != std::string_view::npos)
        throw core::invalid(kOperation, fmt::format("{} must not hold a zero byte", option));
}

void check_address(const ConnectOptions& options) {
    if (!options.socket.empty()) return;
    const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
    if (options.host.empty() || !std::all_of(options.host.begin(), options.host.end(), is_visible))
        throw core::invalid(kOperation, "host must be a name or an address, in printable ASCII without blanks");
    if (options.host.find(':') != std::string::npos && !core::is_ipv6(options.host))
        throw core::invalid(kOperation, "host must be an IPv6 address when it holds a colon; port is another option");
    core::check_range(kOperation, "port", options.port, 1, 65'535);
}

void check_authority(const ConnectOptions& options) {
    const bool verifies = options.tls == TlsMode::verify_ca || options.tls == TlsMode::verify_identity;
    if (verifies && options.tls_ca.empty())
        throw core::invalid(kOperation, "tls_ca must be set, for tls is to verify the server");
    // Who names an authority wants the server checked, and these two don't.
    if (!verifies && options.tls != TlsMode::off && !options.tls_ca.empty())
        throw core::invalid(kOperation, "tls_ca is for tls=verify-ca and tls=verify-identity; no other mode verifies");
}

}  // namespace

void ConnectOptions::validate() const {
    check_no_zero_byte("socket", socket);
    check_no_zero_byte("user", user);
    check_no_zero_byte("password", password);
    check_no_zero_byte("database", database);
    check_no_zero_byte("tls_ca", tls_ca);
    check_address(*this);
    check_authority(*this);
    if (charset.empty() || !std::all_of(charset.begin(), charset.end(), is_charset_character))
        throw core::invalid(kOperation, "charset must be the name of a character set, such as utf8mb4");
    check_timeout("connect_timeout", connect_timeout);
    check_timeout("read_timeout", read_timeout);
    check_timeout("write_timeout", write_timeout);
}

}  // namespace commitq
