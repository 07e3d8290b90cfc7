#include "core/text.h"

#include "core/random.h"
#include "core/utf8.h"

#include <commitq/transaction.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace commitq::core {
namespace {

const std::string kReplacement = "\xef\xbf\xbd";
const std::string kEllipsis = "\xe2\x80\xa6";
const std::string kEmoji = "\xf0\x9f\x98\x80";

std::string repeated(const std::string& text, std::size_t times) {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) out += text;
    return out;
}

// Written apart from the code under test: the encoding of one code point.
std::string utf8(char32_t c) {
    const auto byte = [](char32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
    if (c < 0x80) return {byte(c)};
    if (c < 0x800) return {byte(0xc0 | (c >> 6)), byte(0x80 | (c & 63))};
    if (c < 0x10000) return {byte(0xe0 | (c >> 12)), byte(0x80 | ((c >> 6) & 63)), byte(0x80 | (c & 63))};
    return {byte(0xf0 | (c >> 18)), byte(0x80 | ((c >> 12) & 63)), byte(0x80 | ((c >> 6) & 63)), byte(0x80 | (c & 63))};
}

// The number of characters, or nothing if the text cannot be stored as it is.
std::optional<std::size_t> storable_length(std::string_view text) {
    std::size_t characters = 0;
    for (; !text.empty(); ++characters) {
        const Utf8Step step = read_utf8(text);
        if (!step.valid || utf8(step.code_point) != text.substr(0, step.length)) return std::nullopt;
        if (is_control(step.code_point) && step.code_point != U'\n' && step.code_point != U'\t') return std::nullopt;
        text.remove_prefix(step.length);
    }
    return characters;
}

TEST(Utf8, ReadsEveryCharacter) {
    for (char32_t c = 0; c <= 0x10ffff; ++c) {
        const bool surrogate = c >= 0xd800 && c <= 0xdfff;
        const std::string text = utf8(c);
        const Utf8Step step = read_utf8(text + "x");
        ASSERT_EQ(step.valid, !surrogate) << static_cast<std::uint32_t>(c);
        if (surrogate) continue;
        ASSERT_EQ(step.code_point, c);
        ASSERT_EQ(step.length, text.size());
    }
}

TEST(Utf8, NeverReadsPastTheEnd) {
    const std::string text = utf8(0x1f600);
    for (std::size_t size = 1; size < text.size(); ++size) {
        const std::string cut = text.substr(0, size);
        const Utf8Step step = read_utf8({cut.data(), cut.size()});
        EXPECT_FALSE(step.valid);
        EXPECT_EQ(step.length, size);
    }
}

TEST(CleanErrorText, LeavesGoodTextAlone) {
    for (const std::string text :
         {"", "smtp 451", "two\nlines\tand a tab", "Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80",
          "quotes ' \" ` \\ %s {}", "\xef\xbb\xbf", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"})
        EXPECT_EQ(clean_error_text(text), text);
}

TEST(CleanErrorText, C38ErrorTextThatCannotBeStored) {
    EXPECT_EQ(clean_error_text("no " + kEmoji + " today"), "no " + kEmoji + " today");
    EXPECT_EQ(clean_error_text("caf\xe9"), "caf" + kReplacement);
    const std::string hundred_kb(100 * 1024, 'x');
    EXPECT_EQ(clean_error_text(hundred_kb), std::string(999, 'x') + kEllipsis);
    EXPECT_EQ(clean_error_text(std::string(100 * 1024, '\xff')), repeated(kReplacement, 999) + kEllipsis);
    EXPECT_EQ(clean_error_text(std::string(100 * 1024, '\0')), std::string(999, ' ') + kEllipsis);
    EXPECT_EQ(clean_error_text(repeated(kEmoji, 25 * 1024)), repeated(kEmoji, 999) + kEllipsis);
}

TEST(CleanErrorText, ReplacesWhatIsNotUtf8) {
    struct Case {
        std::string text;
        std::size_t replacements;
    };
    const Case cases[] = {
        {"\x80", 1},                      // a continuation alone
        {"\xff\xfe", 2},                  // bytes that UTF-8 never has
        {"\xc0\xaf", 2},                  // overlong '/'
        {"\xc1\xbf", 2},                  // overlong DEL
        {"\xe0\x80\xaf", 3},              // overlong in three
        {"\xe0\x9f\xbf", 3},              // overlong U+07FF
        {"\xf0\x80\x80\xaf", 4},          // overlong in four
        {"\xf0\x8f\xbf\xbf", 4},          // overlong U+FFFF
        {"\xed\xa0\x80", 3},              // a lone high surrogate
        {"\xed\xbf\xbf", 3},              // a lone low surrogate
        {"\xed\xa0\xbd\xed\xb8\x80", 6},  // an emoji in CESU-8
        {"\xf4\x90\x80\x80", 4},          // above U+10FFFF
        {"\xf5\x80\x80\x80", 4},          // far above
        {"\xf8\x88\x80\x80\x80", 5},      // five bytes
        {"\xe2\x82", 1},                  // cut in the middle: one character was meant
        {"\xf0\x9f\x98", 1},              // cut in the middle
        {"\xf0\x9f", 1},                  // cut in the middle
        {"\xc3", 1},                      // cut in the middle
    };
    for (const auto& [text, replacements] : cases) {
        SCOPED_TRACE(hex(text));
        EXPECT_EQ(clean_error_text(text), repeated(kReplacement, replacements));
        EXPECT_EQ(clean_error_text("a" + text + "b"), "a" + repeated(kReplacement, replacements) + "b");
    }
    EXPECT_EQ(clean_error_text("\xe2\x82\xe2\x82\xac"), kReplacement + "\xe2\x82\xac");
}

TEST(CleanErrorText, TurnsControlCharactersIntoBlanks) {
    for (char c = 0; c < 0x20; ++c) {
        const std::string expected = c == '\n' || c == '\t' ? std::string{'a', c, 'b'} : "a b";
        EXPECT_EQ(clean_error_text(std::string{'a', c, 'b'}), expected) << static_cast<int>(c);
    }
    EXPECT_EQ(clean_error_text("a\x7f\xc2\x80\xc2\x85\xc2\x9f\xc2\xa0"), "a    \xc2\xa0");
    EXPECT_EQ(clean_error_text("\x1b[31mred\x1b[0m\r\n"), " [31mred [0m \n");
}

TEST(CleanErrorText, CutsOnlyWhatIsTooLongAndNeverInsideACharacter) {
    for (const std::string& character : {std::string{"x"}, utf8(0xe9), utf8(0x20ac), kEmoji}) {
        SCOPED_TRACE(hex(character));
        for (const std::size_t fits : {std::size_t{999}, std::size_t{1000}})
            EXPECT_EQ(clean_error_text(repeated(character, fits)), repeated(character, fits));
        EXPECT_EQ(clean_error_text(repeated(character, 1001)), repeated(character, 999) + kEllipsis);
        // A last character of another width, and one that is broken, at the boundary.
        const std::string head = repeated(character, 999);
        EXPECT_EQ(clean_error_text(head + kEmoji), head + kEmoji);
        EXPECT_EQ(clean_error_text(head + kEmoji + "x"), head + kEllipsis);
        EXPECT_EQ(clean_error_text(head + "\xf0\x9f\x98"), head + kReplacement);
        EXPECT_EQ(clean_error_text(head + "x\xf0\x9f\x98"), head + kEllipsis);
    }
}

TEST(CleanErrorText, IsStorableWhateverTheBytes) {
    Random random{38};
    for (int round = 0; round < 2000; ++round) {
        std::string text(static_cast<std::size_t>(random.uniform() * 3000), '\0');
        // Mostly bytes that mean something in UTF-8, so that long sequences happen too.
        constexpr std::string_view likely{
            "\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9\xed\xa0\xf4\x90\x00\x0a\x41"
            "\xbf",
            17};
        for (char& c : text)
            c = random.uniform() < 0.7 ? likely[static_cast<std::size_t>(random.uniform() * likely.size())]
                                       : static_cast<char>(static_cast<int>(random.uniform() * 256));
        const std::string clean = clean_error_text(text);
        const auto characters = storable_length(clean);
        ASSERT_TRUE(characters) << hex(text);
        ASSERT_LE(*characters, 1000U);
        ASSERT_EQ(clean_error_text(clean), clean);
    }
}

TEST(Hex, IsUppercaseAndTwoDigitsAByte) {
    EXPECT_EQ(hex(""), "");
    EXPECT_EQ(hex("AZ"), "415A");
    EXPECT_EQ(hex(std::string_view{"\0\x0f\xf0\xff", 4}), "000FF0FF");
    std::string out = "0x";
    append_hex(out, "\xab");
    append_hex(out, "");
    append_hex(out, "\xcd");
    EXPECT_EQ(out, "0xABCD");
}

TEST(Hex, OfEveryByteReadsBack) {
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        EXPECT_EQ(std::stoi(hex({&c, 1}), nullptr, 16), byte);
    }
}

TEST(Hex, OfALargePayload) {
    const std::string text = hex(std::string(std::size_t{16} << 20U, '\xa5'));
    EXPECT_EQ(text.size(), std::size_t{32} << 20U);
    EXPECT_EQ(text.substr(text.size() - 4), "A5A5");
}

TEST(SqlLiteral, CannotBeBrokenOutOf) {
    EXPECT_EQ(sql_literal("abc"), "_utf8mb4 x'616263'");
    EXPECT_EQ(sql_literal(""), "_utf8mb4 x''");
    EXPECT_EQ(sql_literal("' OR 1=1 -- "), "_utf8mb4 x'27204F5220313D31202D2D20'");
    EXPECT_EQ(sql_literal(std::string_view{"\0\\'\"", 4}), "_utf8mb4 x'005C2722'");
    EXPECT_EQ(sql_literal(kEmoji), "_utf8mb4 x'F09F9880'");
}

}  // namespace
}  // namespace commitq::core
