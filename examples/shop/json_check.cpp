#include "json_check.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace shop {
namespace {

struct Problem {
    std::size_t at;
    const char* what;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Walks over the text once, without recursion: nesting costs a byte a level. Throws Problem.
class Checker {
public:
    explicit Checker(std::string_view text) : text_{text} {}

    void object() {
        blanks();
        if (peek() != '{') {
            fail("this is not an object");
        }
        value();
        while (!open_.empty()) {
            step();
        }
        blanks();
        if (at_ != text_.size()) {
            fail("there is something after the object");
        }
    }

private:
    /// The next member or element of the innermost open container, or its end.
    void step() {
        blanks();
        const bool in_object = open_.back() == '{';
        if (take(in_object ? '}' : ']')) {
            open_.pop_back();
            first_ = false;
            return;
        }
        if (!first_ && !take(',')) {
            fail(in_object ? "expected ',' or '}'" : "expected ',' or ']'");
        }
        blanks();
        if (in_object) {
            if (peek() != '"') {
                fail("expected a name in double quotes");
            }
            string();
            blanks();
            if (!take(':')) {
                fail("expected ':'");
            }
            blanks();
        }
        value();
    }

    void value() {
        const char c = peek();
        first_ = c == '{' || c == '[';
        if (first_) {
            open_.push_back(c);
            ++at_;
        } else if (c == '"') {
            string();
        } else if (c == '-' || is_digit(c)) {
            number();
        } else if (!take("true") && !take("false") && !take("null")) {
            fail("expected a value");
        }
    }

    void number() {
        take('-');
        if (!take('0')) {
            digits();
        }
        if (take('.')) {
            digits();
        }
        if (take('e') || take('E')) {
            if (!take('+')) {
                take('-');
            }
            digits();
        }
    }

    void digits() {
        if (!is_digit(peek())) {
            fail("expected a digit");
        }
        while (is_digit(peek())) {
            ++at_;
        }
    }

    void string() {
        ++at_;
        while (!take('"')) {
            const auto c = static_cast<unsigned char>(peek());
            if (at_ == text_.size()) {
                fail("a string has no end");
            }
            if (c < 0x20) {
                fail("a control character in a string");
            }
            if (take('\\')) {
                escape();
            } else if (c < 0x80) {
                ++at_;
            } else {
                utf8(c);
            }
        }
    }

    void escape() {
        if (take('u')) {
            for (int i = 0; i < 4; ++i, ++at_) {
                if (!is_hex(peek())) {
                    fail("expected four hexadecimal digits after \\u");
                }
            }
        } else if (at_ < text_.size() && std::string_view{"\"\\/bfnrt"}.find(peek()) != std::string_view::npos) {
            ++at_;
        } else {
            fail("an unknown escape");
        }
    }

    /// One character of several bytes; refuses overlong forms, surrogates and what lies above U+10FFFF.
    void utf8(unsigned char lead) {
        const std::size_t length = lead >= 0xf0 ? 4U : lead >= 0xe0 ? 3U : 2U;
        constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
        std::uint32_t code = lead & (0xffU >> (length + 1));
        bool valid = lead >= 0xc2 && lead <= 0xf4 && text_.size() - at_ >= length;
        for (std::size_t i = 1; valid && i < length; ++i) {
            const auto c = static_cast<unsigned char>(text_[at_ + i]);
            valid = (c & 0xc0U) == 0x80;
            code = code << 6U | (c & 0x3fU);
        }
        if (!valid || code < kLeast[length] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) {
            fail("bytes that are not UTF-8");
        }
        at_ += length;
    }

    void blanks() {
        while (at_ < text_.size() && std::string_view{" \t\n\r"}.find(text_[at_]) != std::string_view::npos) {
            ++at_;
        }
    }

    /// The next character; NUL at the end, which is valid nowhere in JSON.
    [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    bool take(char c) { return take(std::string_view{&c, 1}); }

    bool take(std::string_view word) {
        const bool there = text_.substr(at_).starts_with(word);
        at_ += there ? word.size() : 0;
        return there;
    }

    [[noreturn]] void fail(const char* what) const { throw Problem{at_, what}; }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string open_;    ///< The brackets that are open.
    bool first_ = false;  ///< The innermost of them has just been opened.
};

}  // namespace

std::optional<std::string> json_object_problem(std::string_view text) {
    try {
        Checker{text}.object();
        return std::nullopt;
    } catch (const Problem& problem) {
        return fmt::format("{}, at byte {}", problem.what, problem.at + 1);
    }
}

}  // namespace shop
