#include <gtest/gtest.h>
#include <mysql/error_map.h>

namespace commitq::mysql {
namespace {

constexpr unsigned kTlsError = 2026;  // CR_SSL_CONNECTION_ERROR

TEST(ErrorMap, ATlsErrorInConnectingIsForAPersonToMend) {
    const Meaning meaning = connect_meaning_of(kTlsError);
    EXPECT_EQ(meaning.code, Errc::tls_failed);
    EXPECT_EQ(meaning.repeat, Repeat::never);
    EXPECT_EQ(meaning.transaction, TransactionState::none);
    EXPECT_EQ(connect_meaning_of(3159).code, Errc::tls_failed) << "the server wants TLS";
}

TEST(ErrorMap, ATlsErrorOnAnOpenConnectionMeansThatItBroke) {
    const Meaning meaning = meaning_of(kTlsError);
    EXPECT_EQ(meaning.code, Errc::connection_lost);
    EXPECT_EQ(meaning.repeat, Repeat::reconnect);
    EXPECT_EQ(meaning.transaction, TransactionState::lost);
}

TEST(ErrorMap, ALoginThatTheClientCannotDoIsDeniedAndNotTriedForEver) {
    for (const unsigned number : {1045U, 1698U, 2059U, 2061U}) {
        EXPECT_EQ(connect_meaning_of(number).code, Errc::access_denied) << number;
        EXPECT_EQ(connect_meaning_of(number).repeat, Repeat::never) << number;
    }
}

TEST(ErrorMap, AServerThatIsNotThereIsWorthAnotherTry) {
    for (const unsigned number : {1040U, 1129U, 2002U, 2003U, 2005U, 2013U}) {
        EXPECT_EQ(connect_meaning_of(number).code, Errc::connection_lost) << number;
        EXPECT_EQ(connect_meaning_of(number).repeat, Repeat::reconnect) << number;
        EXPECT_EQ(connect_meaning_of(number).transaction, TransactionState::none) << number;
    }
}

TEST(ErrorMap, TextsThatQuoteValuesAreKnown) {
    for (const unsigned number : {1062U, 1064U, 1292U, 1300U, 1366U, 1367U, 1411U, 1526U, 1586U, 1644U, 1690U, 3854U}) {
        EXPECT_TRUE(quotes_values(number, "HY000")) << number;
    }
    EXPECT_TRUE(quotes_values(30'001, "45000")) << "a trigger's own number";
    for (const unsigned number : {1045U, 1146U, 1205U, 1213U, 1406U, 2013U, 2026U}) {
        EXPECT_FALSE(quotes_values(number, "HY000")) << number;
    }
}

}  // namespace
}  // namespace commitq::mysql
