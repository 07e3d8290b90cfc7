#include <commitq/error.h>

#include <fmt/format.h>

#include <utility>

namespace commitq {

namespace {

std::string describe(const Error::Parts& parts) {
    std::string text;
    if (!parts.operation.empty()) text = parts.operation + ": ";
    if (parts.message.empty())
        text += to_string(parts.code);
    else
        text += parts.message;
    if (parts.server_errno != 0 && !parts.sqlstate.empty())
        text += fmt::format(" ({}, {})", parts.server_errno, parts.sqlstate);
    else if (parts.server_errno != 0)
        text += fmt::format(" ({})", parts.server_errno);
    else if (!parts.sqlstate.empty())
        text += fmt::format(" ({})", parts.sqlstate);
    return text;
}

}  // namespace

std::string_view to_string(Errc code) noexcept {
    using enum Errc;
    switch (code) {
        case invalid_argument:
            return "invalid_argument";
        case too_large:
            return "too_large";
        case not_in_transaction:
            return "not_in_transaction";
        case deadlock:
            return "deadlock";
        case lock_timeout:
            return "lock_timeout";
        case connection_lost:
            return "connection_lost";
        case commit_in_doubt:
            return "commit_in_doubt";
        case read_only:
            return "read_only";
        case access_denied:
            return "access_denied";
        case tls_failed:
            return "tls_failed";
        case schema_missing:
            return "schema_missing";
        case schema_too_old:
            return "schema_too_old";
        case schema_too_new:
            return "schema_too_new";
        case unsupported_server:
            return "unsupported_server";
        case lease_lost:
            return "lease_lost";
        case wrong_state:
            return "wrong_state";
        case server:
            return "server";
    }
    return "unknown";
}

Error::Error(Parts parts) : std::runtime_error{describe(parts)}, parts_{std::move(parts)} {}

}  // namespace commitq
