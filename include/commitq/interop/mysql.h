/// @file
/// For those who hold a `MYSQL*`: the only public header that includes `<mysql.h>`.
///
///     #include <commitq/interop/mysql.h>
///     queue.enqueue(db, "order.created", json);          // db is your MYSQL*
///     mysql_query(commitq::native_handle(transaction), "...");
#pragma once

#include <commitq/handle.h>
#include <commitq/transaction.h>

#include <mysql.h>

namespace commitq {

/// Makes `MYSQL*` convert to `Handle`.
template <>
struct ClientTraits<MYSQL> {
    static constexpr bool is_client = true;  ///< A `MYSQL*` is a connection.
#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)
    static constexpr ClientLibrary library = ClientLibrary::mariadb_connector_c;  ///< What `<mysql.h>` is here.
#else
    static constexpr ClientLibrary library = ClientLibrary::libmysqlclient;  ///< What `<mysql.h>` is here.
#endif
};

/// The `MYSQL*` below a transaction of commitq's own, to run statements on. Do not commit, roll back or close it.
[[nodiscard]] inline MYSQL* native_handle(Transaction& transaction) noexcept {
    return static_cast<MYSQL*>(Handle{transaction}.client());
}

}  // namespace commitq
