#include <commitq/error.h>
#include <fmt/format.h>
#include <store/schema.h>

namespace commitq::store {

std::string read_version_sql(const Tables& tables) {
    return fmt::format("SELECT COALESCE(MAX(version),0) FROM {}", tables.schema);
}

int read_version(MYSQL* client, const Tables& tables, std::string_view operation) {
    try {
        mysql::Reply reply = mysql::execute(client, read_version_sql(tables), operation);
        return reply.rows.next() ? reply.rows.number<int>(0) : 0;
    } catch (const Error& error) {
        constexpr unsigned kNoSuchTable = 1146;
        if (error.server_errno() == kNoSuchTable) {
            return 0;
        }
        throw;
    }
}

void check_version(MYSQL* client, const Tables& tables, int expected, std::string_view operation) {
    const auto refuse = [&](Errc code, std::string message) {
        throw Error{{.code = code, .operation = std::string{operation}, .message = std::move(message)}};
    };
    int version = 0;
    try {
        version = read_version(client, tables, operation);
    } catch (const Error& error) {
        if (error.code() == Errc::access_denied) {
            return;
        }
        throw;
    }
    if (version == 0) {
        refuse(Errc::schema_missing, "there are no commitq tables here: run `commitq migrate`");
    }
    if (version < expected) {
        refuse(
            Errc::schema_too_old,
            fmt::format("the tables have version {}, this library needs {}: run `commitq migrate`", version, expected));
    }
    if (version > expected) {
        refuse(
            Errc::schema_too_new,
            fmt::format("the tables have version {}, this library knows {}: upgrade the library", version, expected));
    }
}

std::string record_version_sql(const Tables& tables, int version) {
    return fmt::format("INSERT IGNORE INTO {} (version,applied_at) VALUES ({},UTC_TIMESTAMP(6))", tables.schema,
                       version);
}

std::string probe_sql(const Tables& tables) {
    return fmt::format("SELECT duty FROM {} WHERE duty=_ascii x'70726F6265' FOR UPDATE SKIP LOCKED", tables.duties);
}

namespace {

constexpr std::string_view kProbe = "start";

[[noreturn]] void refuse_server(const std::string& what) {
    throw Error{{.code = Errc::unsupported_server,
                 .operation = std::string{kProbe},
                 .message = what + ": commitq needs MySQL 8.0.1 or MariaDB 10.6, or newer, and no proxy between"
                                   " that changes locking reads"}};
}

/// Whether the probe's row could be had. Leaves the transaction open.
bool take_probe(mysql::Session& session, const Tables& tables) {
    try {
        return session.begin(probe_sql(tables), kProbe).back().rows.size() > 0;
    } catch (const Error& error) {
        constexpr unsigned kSyntaxError = 1064;
        if (error.server_errno() == kSyntaxError) {
            refuse_server("the server doesn't know SKIP LOCKED");
        }
        throw;
    }
}

bool passes_by(mysql::Session& session, const Tables& tables) {
    try {
        return !take_probe(session, tables);
    } catch (const Error& error) {
        if (error.code() != Errc::lock_timeout) {
            throw;
        }
        return false;
    }
}

}  // namespace

void probe_skip_locked(mysql::Session& holder, mysql::Session& passer, const Tables& tables) {
    bool passed = true;
    if (take_probe(holder, tables)) {  // else another worker has it, which is just starting, and we have passed it by
        passed = passes_by(passer, tables);
        passer.rollback(kProbe);
    }
    holder.rollback(kProbe);
    if (!passed) {
        refuse_server("the server ignores SKIP LOCKED");
    }
}

}  // namespace commitq::store
