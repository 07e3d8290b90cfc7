// The C client library, whichever it is: MariaDB Connector/C or libmysqlclient. Only this layer includes it.
#pragma once

#include <commitq/handle.h>
#include <commitq/interop/mysql.h>
#include <errmsg.h>
#include <mysql.h>

namespace commitq::mysql {

inline constexpr bool kMariaDbClient = ClientTraits<MYSQL>::library == ClientLibrary::mariadb_connector_c;

/// One per thread that uses the client library. The first one initialises the library, which isn't thread-safe by itself.
class ThreadScope {
public:
    ThreadScope();
    ThreadScope(const ThreadScope&) = delete;
    ThreadScope& operator=(const ThreadScope&) = delete;
    ~ThreadScope();
};

/// The MYSQL* behind a handle of the caller's. Throws when it is null or of the other client library.
MYSQL* unwrap(Handle handle);

}  // namespace commitq::mysql
