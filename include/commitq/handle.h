/// @file
/// The caller's own connection, as commitq sees it.
///
/// `Handle` is what calls such as `Queue::enqueue` take. It is made implicitly from a `MYSQL*` (include
/// `commitq/interop/mysql.h`, the only public header that knows that type) or from a `commitq::Transaction`.
///
///     #include <commitq/interop/mysql.h>
///     queue.enqueue(db, "order.created", json);   // db is a MYSQL*
#pragma once

#include <commitq/export.h>

namespace commitq {

class Transaction;

/// The C client library that a `MYSQL*` belongs to. The two have different structs under the same name.
enum class ClientLibrary {
    libmysqlclient,       ///< Oracle's client.
    mariadb_connector_c,  ///< MariaDB Connector/C, which Debian's `default-libmysqlclient-dev` is.
};

/// The client library that this build of commitq uses.
COMMITQ_EXPORT ClientLibrary client_library() noexcept;

/// Says that a pointer to `Client` is a connection; `commitq/interop/mysql.h` specialises it for `MYSQL`.
template <class Client>
struct ClientTraits {
    static constexpr bool is_client = false;  ///< True in the specialisation.
};

/// A borrowed connection. Ownership: none; the connection must outlive the call. Threading: as the connection.
/// Pass it by value; do not keep it.
class COMMITQ_EXPORT Handle {
public:
    /// From the client library's own handle.
    /// @throws Error `wrong_state` when used, if @p client comes from another client library than commitq was built
    ///         with, and `invalid_argument` if it is null.
    template <class Client>
    requires(ClientTraits<Client>::is_client) Handle(Client* client)
    noexcept : client_{client}, library_{ClientTraits<Client>::library} {}

    /// From a transaction of commitq's own.
    Handle(Transaction& transaction) noexcept;

    /// The raw pointer: a `MYSQL*`.
    [[nodiscard]] void* client() const noexcept { return client_; }
    /// The library that it was compiled against.
    [[nodiscard]] ClientLibrary library() const noexcept { return library_; }

private:
    void* client_;
    ClientLibrary library_;
};

}  // namespace commitq
