#include <commitq/error.h>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace commitq {
namespace {

TEST(Error, SaysOperationMessageAndServersFigures) {
    struct Case {
        Error::Parts parts;
        std::string_view what;
    };
    const Case cases[] = {
        {{.operation = "claim", .message = "Deadlock found", .server_errno = 1213, .sqlstate = "40001"},
         "claim: Deadlock found (1213, 40001)"},
        {{.operation = "claim", .message = "gone", .server_errno = 2006}, "claim: gone (2006)"},
        {{.operation = "claim", .message = "gone", .sqlstate = "HY000"}, "claim: gone (HY000)"},
        {{.operation = "enqueue", .message = "bad name"}, "enqueue: bad name"},
        {{.message = "bad name"}, "bad name"},
        {{.code = Errc::lease_lost, .operation = "complete"}, "complete: lease_lost"},
        {{.code = Errc::deadlock, .operation = "claim", .server_errno = 1213, .sqlstate = "40001"},
         "claim: deadlock (1213, 40001)"},
        {{}, "server"},
        {{.operation = "a", .message = "{} %s {0}"}, "a: {} %s {0}"},
    };
    for (const auto& [parts, what] : cases) EXPECT_EQ(std::string_view{Error{parts}.what()}, what);
}

TEST(Error, KeepsItsParts) {
    const Error error{{.code = Errc::lock_timeout,
                       .operation = "enqueue",
                       .message = "Lock wait timeout exceeded",
                       .server_errno = 1205,
                       .sqlstate = "HY000",
                       .repeat = Repeat::statement,
                       .transaction = TransactionState::partial}};
    const Error copy = error;  // NOLINT: copying is what is tested
    for (const Error& e : {error, copy}) {
        EXPECT_EQ(e.code(), Errc::lock_timeout);
        EXPECT_EQ(e.operation(), "enqueue");
        EXPECT_EQ(e.parts().message, "Lock wait timeout exceeded");
        EXPECT_EQ(e.server_errno(), 1205U);
        EXPECT_EQ(e.sqlstate(), "HY000");
        EXPECT_EQ(e.repeat(), Repeat::statement);
        EXPECT_EQ(e.transaction(), TransactionState::partial);
    }
}

TEST(Error, IsARuntimeErrorAndLeaseLostIsAnError) {
    EXPECT_TRUE((std::is_base_of_v<std::runtime_error, Error>));
    EXPECT_THROW(throw LeaseLost({.code = Errc::lease_lost}), Error);
}

TEST(Errc, HasANameForEachCode) {
    const std::pair<Errc, std::string_view> names[] = {
        {Errc::invalid_argument, "invalid_argument"},
        {Errc::too_large, "too_large"},
        {Errc::not_in_transaction, "not_in_transaction"},
        {Errc::deadlock, "deadlock"},
        {Errc::lock_timeout, "lock_timeout"},
        {Errc::connection_lost, "connection_lost"},
        {Errc::commit_in_doubt, "commit_in_doubt"},
        {Errc::read_only, "read_only"},
        {Errc::access_denied, "access_denied"},
        {Errc::tls_failed, "tls_failed"},
        {Errc::schema_missing, "schema_missing"},
        {Errc::schema_too_old, "schema_too_old"},
        {Errc::schema_too_new, "schema_too_new"},
        {Errc::unsupported_server, "unsupported_server"},
        {Errc::lease_lost, "lease_lost"},
        {Errc::wrong_state, "wrong_state"},
        {Errc::server, "server"},
    };
    for (const auto& [code, name] : names) EXPECT_EQ(to_string(code), name);
    EXPECT_EQ(std::size(names), static_cast<std::size_t>(Errc::server) + 1);
}

}  // namespace
}  // namespace commitq
