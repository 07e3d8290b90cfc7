// A URL holds a password, and a mistake in its punctuation makes the password look like another part. So a message may
// name a part, but never quotes what stands in it.
#include <commitq/connect_options.h>

#include "core/duration.h"
#include "core/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

namespace commitq {

namespace {

using std::chrono::milliseconds;

constexpr std::array<std::pair<std::string_view, TlsMode>, 5> kTlsModes{{
    {"off", TlsMode::off},
    {"preferred", TlsMode::preferred},
    {"required", TlsMode::required},
    {"verify-ca", TlsMode::verify_ca},
    {"verify-identity", TlsMode::verify_identity},
}};

Error bad_url(std::string message) { return core::invalid("from_url", std::move(message)); }

// What stands before `separator` is the result, what stands behind it stays in `text`. Without one: all, and nothing.
std::string_view take_until(std::string_view& text, char separator) {
    const std::string_view head = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(head.size() + 1, text.size()));
    return head;
}

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string decode(std::string_view part, std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            out += text[at];
            continue;
        }
        const int high = at + 2 < text.size() ? hex_digit(text[at + 1]) : -1;
        const int low = at + 2 < text.size() ? hex_digit(text[at + 2]) : -1;
        if (high < 0 || low < 0) throw bad_url(fmt::format("the {} holds a % without two hex digits", part));
        const int byte = high * 16 + low;
        if (byte == 0) throw bad_url(fmt::format("the {} must not hold a zero byte", part));
        out += static_cast<char>(byte);
        at += 2;
    }
    return out;
}

std::string encode(std::string_view text, std::string_view also_plain = {}) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~' || also_plain.find(c) != std::string_view::npos;
        if (plain)
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

void read_credentials(ConnectOptions& options, std::string_view text) {
    options.user = decode("user", take_until(text, ':'));
    options.password = decode("password", text);
}

std::uint16_t read_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, port);
    if (error != std::errc{} || stop != end || port == 0) throw bad_url("the port must be a number from 1 to 65535");
    return port;
}

void read_ipv6(ConnectOptions& options, std::string_view& text) {
    text.remove_prefix(1);
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) throw bad_url("the host opens a bracket and doesn't close it");
    options.host = decode("host", text.substr(0, end));
    if (!core::is_ipv6(options.host)) throw bad_url("what stands in brackets must be an IPv6 address");
    text.remove_prefix(end + 1);
    if (!text.empty() && text.front() != ':') throw bad_url("only a port may follow an IPv6 address");
}

// An empty host means the default, as in `mysql://app@/shop?socket=...`.
void read_address(ConnectOptions& options, std::string_view text) {
    if (text.starts_with('[')) {
        read_ipv6(options, text);
    } else {
        const std::string_view host = text.substr(0, text.find(':'));
        if (!host.empty()) options.host = decode("host", host);
        text.remove_prefix(host.size());
    }
    if (text.empty()) return;
    text.remove_prefix(1);
    if (text.find(':') != std::string_view::npos) throw bad_url("an IPv6 address must stand in brackets");
    options.port = read_port(text);
}

milliseconds read_timeout(std::string_view name, std::string_view text) {
    const auto duration = core::parse_duration(text);
    if (!duration) throw bad_url(fmt::format("{} must be a duration such as 5s or 2min", name));
    return std::chrono::floor<milliseconds>(*duration);
}

TlsMode read_tls(std::string_view text) {
    const auto mode =
        std::find_if(kTlsModes.begin(), kTlsModes.end(), [&](auto& known) { return known.first == text; });
    if (mode == kTlsModes.end()) throw bad_url("tls must be off, preferred, required, verify-ca or verify-identity");
    return mode->second;
}

void read_parameter(ConnectOptions& options, std::string_view name, std::string_view text) {
    const std::string value = decode("value of a parameter", text);
    if (value.empty()) throw bad_url("a parameter has no value");
    if (name == "socket")
        options.socket = value;
    else if (name == "tls")
        options.tls = read_tls(value);
    else if (name == "ca")
        options.tls_ca = value;
    else if (name == "charset")
        options.charset = value;
    else if (name == "connect_timeout")
        options.connect_timeout = read_timeout(name, value);
    else if (name == "read_timeout")
        options.read_timeout = read_timeout(name, value);
    else if (name == "write_timeout")
        options.write_timeout = read_timeout(name, value);
    else
        throw bad_url(
            "unknown parameter; there are socket, tls, ca, charset, connect_timeout, read_timeout and write_timeout");
}

void read_parameters(ConnectOptions& options, std::string_view text) {
    std::set<std::string_view> seen;
    while (!text.empty()) {
        std::string_view value = take_until(text, '&');
        const std::string_view name = take_until(value, '=');
        if (!seen.insert(name).second) throw bad_url("a parameter is given twice");
        read_parameter(options, name, value);
    }
}

void check_characters(std::string_view url) {
    const auto is_visible = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; };
    if (!std::all_of(url.begin(), url.end(), is_visible))
        throw bad_url("blanks and control characters must be percent-encoded");
}

std::string duration_text(milliseconds value) {
    if (value % std::chrono::seconds{1} == milliseconds{0}) return fmt::format("{}s", value.count() / 1000);
    return fmt::format("{}ms", value.count());
}

// Only what differs from the defaults.
std::string parameters_text(const ConnectOptions& options) {
    const ConnectOptions defaults;
    std::string text;
    const auto add = [&text](std::string_view name, std::string_view value) {
        text += fmt::format("{}{}={}", text.empty() ? '?' : '&', name, encode(value, "/"));
    };
    if (!options.socket.empty()) add("socket", options.socket);
    if (options.tls != defaults.tls) add("tls", to_string(options.tls));
    if (!options.tls_ca.empty()) add("ca", options.tls_ca);
    if (options.charset != defaults.charset) add("charset", options.charset);
    const auto add_timeout = [&](std::string_view name, milliseconds value, milliseconds usual) {
        if (value != usual) add(name, duration_text(value));
    };
    add_timeout("connect_timeout", options.connect_timeout, defaults.connect_timeout);
    add_timeout("read_timeout", options.read_timeout, defaults.read_timeout);
    add_timeout("write_timeout", options.write_timeout, defaults.write_timeout);
    return text;
}

std::string address_text(const ConnectOptions& options) {
    if (!options.socket.empty()) return {};
    const bool is_ipv6 = options.host.find(':') != std::string::npos;
    return is_ipv6 ? fmt::format("[{}]:{}", encode(options.host, ":"), options.port)
                   : fmt::format("{}:{}", encode(options.host), options.port);
}

}  // namespace

ConnectOptions ConnectOptions::from_url(std::string_view url) {
    constexpr std::string_view scheme = "mysql://";
    if (!url.starts_with(scheme)) throw bad_url("the URL must start with mysql://");
    check_characters(url);
    url.remove_prefix(scheme.size());
    std::string_view authority = url.substr(0, url.find_first_of("/?#"));
    url.remove_prefix(authority.size());
    // Most likely the end of a password that holds one of these.
    if (url.find_first_of("@#") != std::string_view::npos)
        throw bad_url("/ ? # and @ in a user or password must be percent-encoded, and so must # and @ elsewhere");

    ConnectOptions options;
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
        read_credentials(options, authority.substr(0, at));
        authority.remove_prefix(at + 1);
    }
    read_address(options, authority);
    std::string_view path = take_until(url, '?');
    if (path.starts_with('/')) path.remove_prefix(1);
    if (path.find('/') != std::string_view::npos) throw bad_url("the path must be the name of a database alone");
    options.database = decode("database", path);
    read_parameters(options, url);
    options.validate();
    return options;
}

std::string_view to_string(TlsMode mode) noexcept {
    const auto known =
        std::find_if(kTlsModes.begin(), kTlsModes.end(), [&](const auto& entry) { return entry.second == mode; });
    return known == kTlsModes.end() ? "unknown" : known->first;
}

std::string ConnectOptions::describe() const {
    std::string account = encode(user);
    if (!password.empty()) account += ":***";
    if (!account.empty()) account += '@';
    return fmt::format("mysql://{}{}/{}{}", account, address_text(*this), encode(database), parameters_text(*this));
}

}  // namespace commitq
