/// @file
/// How to reach the server: a struct, or a URL.
///
///     auto options = commitq::ConnectOptions::from_url("mysql://app:secret@db:3306/shop?tls=required");
///
/// Only commitq's own connections use it (workers, reapers, schema). `Queue` works on the connection you give it.
#pragma once

#include <commitq/export.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace commitq {

/// How a connection uses TLS; the names are those of the MySQL clients. `required` and the two after it give
/// `tls_failed` where they can't be had, and never a connection without TLS. With MariaDB Connector/C, `verify_ca`
/// checks the name too: that library checks both or none. A unix socket may have no TLS; those three refuse it then.
enum class TlsMode {
    off,              ///< Never.
    preferred,        ///< If the server offers it, without checking who it is; not on a unix socket. The default.
    required,         ///< Or fail; without checking who the server is.
    verify_ca,        ///< Or fail; the certificate must come from `tls_ca`.
    verify_identity,  ///< As `verify_ca`, and the certificate must name `host`.
};

/// The name of @p mode as it stands in a URL, such as `verify-ca`.
COMMITQ_EXPORT std::string_view to_string(TlsMode mode) noexcept;

/// Where the server is and how to talk to it. A plain value.
struct COMMITQ_EXPORT ConnectOptions {
    std::string host = "127.0.0.1";                    ///< Host name or address. Not used when `socket` is set.
    std::uint16_t port = 3306;                         ///< TCP port.
    std::string socket{};                              ///< Path of a unix socket; wins over host and port.
    std::string user{};                                ///< Account name.
    std::string password{};                            ///< Never logged, never part of a message.
    std::string database{};                            ///< The schema that holds the commitq tables.
    TlsMode tls = TlsMode::preferred;                  ///< See `TlsMode`.
    std::string tls_ca{};                              ///< PEM file of the authority, for the modes that verify.
    std::string charset = "utf8mb4";                   ///< Character set of the connection.
    std::chrono::milliseconds connect_timeout{5'000};  ///< 1 s to 1 h, in whole seconds (rounded up). Default 5 s.
    std::chrono::milliseconds read_timeout{30'000};    ///< Longest wait for a reply; 1 s to 1 h. Default 30 s.
    std::chrono::milliseconds write_timeout{30'000};   ///< Longest wait to send; 1 s to 1 h. Default 30 s.

    /// Reads `mysql://user:password@host:port/database?parameter=value&...`. Parts are percent-decoded; an IPv6 address
    /// stands in brackets. Parameters: `socket`, `tls` (`off`, `preferred`, `required`, `verify-ca`,
    /// `verify-identity`), `ca`, `charset`, and `connect_timeout`, `read_timeout`, `write_timeout` (such as `5s`,
    /// `1500ms`, `2min`).
    /// @throws Error `invalid_argument` for anything else, naming the part but never the password.
    [[nodiscard]] static ConnectOptions from_url(std::string_view url);

    /// The options as a URL for logs, with `***` for the password.
    [[nodiscard]] std::string describe() const;

    /// Checks ranges. Every class that takes options calls it.
    /// @throws Error `invalid_argument`.
    void validate() const;
};

}  // namespace commitq
