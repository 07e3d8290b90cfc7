#include "core/headers.h"

#include "core/random.h"
#include "thrown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace commitq::core {
namespace {

TEST(Headers, AreOneLineEach) {
    const Headers headers{{"traceparent", "00-4bf92f35-01"}, {"X.y_z-1", "a: b, c"}, {"empty", ""}};
    EXPECT_NO_THROW(check_headers("enqueue", headers));
    EXPECT_EQ(encode_headers(headers), "X.y_z-1: a: b, c\nempty: \ntraceparent: 00-4bf92f35-01\n");
    EXPECT_EQ(encode_headers({}), "");
}

TEST(Headers, ReadBackAsTheyWere) {
    for (const Headers& headers : {Headers{},
                                   {{"a", ""}},
                                   {{"a", " "}},
                                   {{"a", "  two before, two behind  "}},
                                   {{"a", ":"}, {"A", ": "}},
                                   {{"a", "b: c"}, {"d", "\xc3\xa9\xf0\x9f\x98\x80"}},
                                   {{std::string(64, 'n'), std::string(4000, 'v')}}}) {
        EXPECT_NO_THROW(check_headers("enqueue", headers));
        EXPECT_EQ(decode_headers(encode_headers(headers)), headers);
    }
}

TEST(Headers, HaveNamesThatNeedNoQuoting) {
    EXPECT_NO_THROW(check_headers("enqueue", {{std::string(64, 'a'), ""}}));
    for (const std::string name : {"", "a b", "a:b", "a\n", "a=b", "\xc3\xa9", "a/b", "a\r"})
        expect_invalid([&] { check_headers("enqueue", {{name, "v"}}); }, "enqueue", "header name");
    expect_invalid([] { check_headers("enqueue", {{std::string(65, 'a'), ""}}); }, "enqueue", "header name");
    expect_invalid([] { check_headers("enqueue", {{std::string("a\0b", 3), ""}}); }, "enqueue", "header name");
}

TEST(Headers, HaveValuesThatAnyColumnCanStore) {
    for (const std::string value :
         {"a\nb", "a\r", "\t", "\x1b", "\x7f", "\xc2\x85", "\xff", "\xed\xa0\x80", "\xc0\xaf"})
        expect_invalid([&] { check_headers("enqueue", {{"key", value}}); }, "enqueue", "header key");
    expect_invalid([] { check_headers("enqueue", {{"key", std::string(1, '\0')}}); }, "enqueue", "header key");
}

TEST(Headers, KeepTheirValuesOutOfTheMessage) {
    const auto error = thrown([] { check_headers("enqueue", {{"key", "hunter2\n"}}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(std::string{error->what()}.find("hunter2"), std::string::npos);
}

TEST(Headers, FitIntoTheirColumn) {
    Headers headers{{"a", "b"}, {"c", ""}};
    headers["c"] = std::string(kMaxHeaderBytes - encode_headers(headers).size(), 'x');
    EXPECT_EQ(encode_headers(headers).size(), kMaxHeaderBytes);
    EXPECT_NO_THROW(check_headers("enqueue", headers));
    headers["c"] += 'x';
    expect_invalid([&] { check_headers("enqueue", headers); }, "enqueue", "4096");
    Headers many;
    for (int i = 0; i < 2000; ++i) many[std::to_string(i)] = "";
    expect_invalid([&] { check_headers("enqueue", many); }, "enqueue", "4096");
    expect_invalid([] { check_headers("enqueue", {{"a", std::string(8'000'000, 'x')}}); }, "enqueue", "4096");
}

TEST(Headers, WrittenByOthersAreReadAsFarAsTheyGo) {
    struct Case {
        std::string text;
        Headers headers;
    };
    const Case cases[] = {
        {"", {}},
        {"\n\n\n", {}},
        {"no colon", {}},
        {":", {}},
        {": v", {}},
        {"a:b", {{"a", "b"}}},
        {"a: b", {{"a", "b"}}},
        {"a: b\r\nc: d\r\n", {{"a", "b"}, {"c", "d"}}},
        {"a:\n", {{"a", ""}}},
        {"a:  b", {{"a", " b"}}},
        {"bad name: x\nc: d\n", {{"c", "d"}}},
        {"a: \xff\nc: d\n", {{"c", "d"}}},
        {"a: x\ry\nc: d\n", {{"c", "d"}}},
        {"a: 1\na: 2\n", {{"a", "2"}}},
    };
    for (const auto& [text, headers] : cases) {
        SCOPED_TRACE(text);
        EXPECT_EQ(decode_headers(text), headers);
    }
}

TEST(Headers, OfAnyBytesReadAsHeadersThatMayBeSent) {
    Random random{7};
    const std::string_view alphabet = "ab:: \n\n\r\t\xc3\xa9\xff-._";
    for (int round = 0; round < 2000; ++round) {
        std::string text(static_cast<std::size_t>(random.uniform() * 60), '\0');
        for (char& c : text)
            c = alphabet[static_cast<std::size_t>(random.uniform() * static_cast<double>(alphabet.size()))];
        const Headers headers = decode_headers(text);
        EXPECT_NO_THROW(check_headers("decode", headers));
        EXPECT_EQ(decode_headers(encode_headers(headers)), headers);
    }
}

}  // namespace
}  // namespace commitq::core
