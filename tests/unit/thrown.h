// The error that a call throws, to look at all of it.
#pragma once

#include <commitq/error.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace commitq {

/// What @p call throws; a failure of the test if that is no `Error`, or nothing.
template <class Call>
std::optional<Error> thrown(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    } catch (...) {
        ADD_FAILURE() << "throws something else than Error";
        return std::nullopt;
    }
    ADD_FAILURE() << "does not throw";
    return std::nullopt;
}

/// Expects that @p call refuses its input as every check does: with nothing sent and the caller's transaction intact.
template <class Call>
void expect_invalid(Call call, const std::string& operation, const std::string& named = {}) {
    const auto error = thrown(call);
    if (!error) return;
    EXPECT_EQ(error->code(), Errc::invalid_argument);
    EXPECT_EQ(error->operation(), operation);
    EXPECT_EQ(error->repeat(), Repeat::never);
    EXPECT_EQ(error->transaction(), TransactionState::intact);
    EXPECT_NE(std::string{error->what()}.find(named), std::string::npos) << error->what();
}

}  // namespace commitq
