// Rules for the names that users choose. All are plain ASCII, so that no collation can make two of them equal and no
// quoting is needed where one becomes part of an identifier.
#pragma once

#include <commitq/error.h>

#include <string>
#include <string_view>

namespace commitq::core {

/// An `invalid_argument` error: nothing was sent, the transaction is intact.
[[nodiscard]] Error invalid(std::string_view operation, std::string message);

/// 1-64 printable ASCII characters without blanks. @throws Error `invalid_argument`; never quotes the name.
void check_queue_name(std::string_view operation, std::string_view name);
/// 1-128 printable ASCII characters without blanks. @throws Error `invalid_argument`.
void check_type_name(std::string_view operation, std::string_view name);
/// `[A-Za-z0-9_]`, 1-32 characters. @throws Error `invalid_argument`.
void check_prefix(std::string_view operation, std::string_view prefix);
/// Empty, or `[A-Za-z0-9_$-]`, 1-64 characters. @throws Error `invalid_argument`.
void check_schema_name(std::string_view operation, std::string_view name);

/// Whether @p host is an IPv6 address, with a zone or without: `::1`, `fe80::1%eth0`.
[[nodiscard]] bool is_ipv6(std::string_view host);

}  // namespace commitq::core
