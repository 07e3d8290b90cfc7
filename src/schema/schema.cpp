#include <commitq/schema.h>
#include <core/names.h>
#include <fmt/format.h>
#include <mysql/session.h>
#include <schema/migrations.h>
#include <store/schema.h>
#include <store/sql.h>

#include <chrono>
#include <utility>

namespace commitq {
namespace {

constexpr std::string_view kMigrate = "migrate";

ConnectOptions for_ddl(ConnectOptions options) {
    options.read_timeout = std::chrono::hours{1};  // an ALTER of a large table takes its time
    return options;
}

/// The server's named lock for migrating one prefix of one schema. Ends with its connection at the latest.
class MigrationLock {
public:
    MigrationLock(mysql::Session& session, std::string_view prefix)
        : session_{session},
          name_{fmt::format("CONCAT('commitq ',LEFT(SHA2(CONCAT(DATABASE(),'.',{}),256),40))",
                            store::name_literal(prefix))} {
        mysql::Reply reply = session_.execute(fmt::format("SELECT GET_LOCK({},60)", name_), kMigrate);
        if (!reply.rows.next() || reply.rows.number(0) != 1) {
            throw Error{{.code = Errc::lock_timeout,
                         .operation = std::string{kMigrate},
                         .message = "another process has been migrating for over a minute",
                         .repeat = Repeat::statement}};
        }
    }
    MigrationLock(const MigrationLock&) = delete;
    MigrationLock& operator=(const MigrationLock&) = delete;
    ~MigrationLock() {
        try {
            session_.execute(fmt::format("DO RELEASE_LOCK({})", name_), kMigrate);
        } catch (...) {  // the connection is gone, and the lock with it
        }
    }

private:
    mysql::Session& session_;
    std::string name_;
};

[[noreturn]] void too_new(int version) {
    throw Error{
        {.code = Errc::schema_too_new,
         .operation = std::string{kMigrate},
         .message = fmt::format("the tables have version {}, this library knows {}", version, Schema::kVersion)}};
}

std::vector<std::string> statements_to(int version, std::string_view prefix, const store::Tables& tables) {
    auto statements = schema::statements(schema::migrations()[static_cast<std::size_t>(version) - 1], prefix);
    statements.push_back(store::record_version_sql(tables, version));
    return statements;
}

}  // namespace

Schema::Schema(ConnectOptions connection, std::string prefix)
    : connection_{std::move(connection)}, prefix_{std::move(prefix)} {
    connection_.validate();
    core::check_prefix("schema", prefix_);
    if (connection_.database.empty()) {
        throw core::invalid("schema", "the connection names no database");
    }
}

int Schema::version() const {
    const mysql::ThreadScope thread;
    const mysql::Session session{connection_, mysql::Purpose::library};
    return store::read_version(session.client(), store::Tables{prefix_}, kMigrate);
}

int Schema::migrate() const {
    const mysql::ThreadScope thread;
    mysql::Session session{for_ddl(connection_), mysql::Purpose::library};
    session.execute("SET SESSION lock_wait_timeout = 60", kMigrate);
    const MigrationLock lock{session, prefix_};
    const store::Tables tables{prefix_};
    const int before = store::read_version(session.client(), tables, kMigrate);
    if (before > kVersion) {
        too_new(before);
    }
    for (int version = before + 1; version <= kVersion; ++version) {
        for (const std::string& statement : statements_to(version, prefix_, tables)) {
            session.execute(statement, kMigrate);
        }
    }
    return kVersion - before;
}

std::vector<std::string> Schema::pending() const {
    const int before = version();
    if (before > kVersion) {
        too_new(before);
    }
    std::vector<std::string> all;
    for (int version = before + 1; version <= kVersion; ++version) {
        for (std::string& statement : statements_to(version, prefix_, store::Tables{prefix_})) {
            all.push_back(std::move(statement));
        }
    }
    return all;
}

void Schema::check() const {
    const mysql::ThreadScope thread;
    const mysql::Session session{connection_, mysql::Purpose::library};
    store::check_version(session.client(), store::Tables{prefix_}, kVersion, "check");
}

}  // namespace commitq
