#include "core/names.h"

#include "thrown.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace commitq::core {
namespace {

using Check = void (*)(std::string_view, std::string_view);

TEST(Names, AllowPrintableAscii) {
    std::string all;
    for (char c = 0x21; c <= 0x7e; ++c) all += c;
    for (const Check check : {check_queue_name, check_type_name}) {
        EXPECT_NO_THROW(check("enqueue", "orders"));
        EXPECT_NO_THROW(check("enqueue", "a"));
        EXPECT_NO_THROW(check("enqueue", std::string_view{all}.substr(0, 47)));
        EXPECT_NO_THROW(check("enqueue", std::string_view{all}.substr(47)));
    }
}

TEST(Names, HaveALength) {
    struct Case {
        Check check;
        std::size_t longest;
    };
    for (const Case& c : {Case{check_queue_name, 64}, Case{check_type_name, 128}, Case{check_prefix, 32},
                          Case{check_schema_name, 64}}) {
        SCOPED_TRACE(c.longest);
        EXPECT_NO_THROW(c.check("enqueue", std::string(c.longest, 'x')));
        expect_invalid([&] { c.check("enqueue", std::string(c.longest + 1, 'x')); }, "enqueue");
        expect_invalid([&] { c.check("enqueue", std::string(1'000'000, 'x')); }, "enqueue");
    }
}

TEST(Names, AreNotEmptyButTheSchemas) {
    for (const Check check : {check_queue_name, check_type_name, check_prefix})
        expect_invalid([&] { check("on", ""); }, "on");
    EXPECT_NO_THROW(check_schema_name("queue", ""));
}

// What a collation takes for equal is refused, or told apart by the column's own, which compares bytes.
TEST(Names, C36NamesThatCollateEqual) {
    for (const Check check : {check_queue_name, check_type_name, check_prefix, check_schema_name}) {
        EXPECT_NO_THROW(check("enqueue", "A"));
        EXPECT_NO_THROW(check("enqueue", "a"));
        for (const std::string_view name :
             {"\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81", "a ", " a", "a b", "a\t", "a\n", "a\r",
              "a\xc2\xa0", "a\xe3\x80\x80", "\xe2\x80\x8b", "\xef\xbd\x81"}) {
            SCOPED_TRACE(name);
            expect_invalid([&] { check("enqueue", name); }, "enqueue");
        }
    }
}

TEST(Names, HoldNoControlCharactersAndNoOtherBytes) {
    for (int byte = 0; byte < 256; ++byte) {
        if (byte >= 0x21 && byte <= 0x7e) continue;
        SCOPED_TRACE(byte);
        const std::string name{'a', static_cast<char>(byte), 'b'};
        for (const Check check : {check_queue_name, check_type_name, check_prefix, check_schema_name})
            expect_invalid([&] { check("enqueue", name); }, "enqueue");
    }
}

TEST(Names, OfPrefixesAreIdentifiers) {
    EXPECT_NO_THROW(check_prefix("queue", "commitq_"));
    EXPECT_NO_THROW(check_prefix("queue", "A9_z0"));
    for (const std::string_view prefix : {"a-b", "a`b", "a.b", "a;b", "a'b", "a\"b", "a$", "a b", "a/b", "a\\"})
        expect_invalid([&] { check_prefix("queue", prefix); }, "queue", "prefix");
}

TEST(Names, OfSchemasCannotLeaveTheirQuotes) {
    for (const std::string_view name : {"shop", "shop-eu", "shop_1", "Shop$2"})
        EXPECT_NO_THROW(check_schema_name("queue", name));
    for (const std::string_view name : {"a`b", "a.b", "a'b", "a\"b", "a/b", "a;b", "a b", "a\\b"})
        expect_invalid([&] { check_schema_name("queue", name); }, "queue", "database");
}

TEST(Names, StayOutOfTheMessage) {
    const auto error = thrown([] { check_queue_name("enqueue", "hunter2 hunter2"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(std::string{error->what()}.find("hunter2"), std::string::npos) << error->what();
    EXPECT_NE(std::string{error->what()}.find("byte 8"), std::string::npos) << error->what();
}

TEST(Invalid, SendsNothingAndLeavesTheTransaction) {
    expect_invalid([] { throw invalid("claim", "a message"); }, "claim", "claim: a message");
}

}  // namespace
}  // namespace commitq::core
