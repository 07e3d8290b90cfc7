// The text of an error: whatever a handler throws becomes something that can be stored, and what can be stored stays.
#include "fuzz/check.h"

#include <core/text.h>

namespace commitq::fuzz {
namespace {

constexpr std::size_t kLongest = 1'000;

/// What becomes of valid UTF-8.
std::string expected_of(std::u32string characters) {
    if (characters.size() > kLongest) {
        characters.resize(kLongest);
        characters.back() = U'\u2026';
    }
    std::string text;
    for (const char32_t c : characters) {
        text += is_control_character(c) && c != U'\n' && c != U'\t' ? " " : utf8(c);
    }
    return text;
}

void check_text(std::string_view text) {
    const std::string clean = core::clean_error_text(text);
    const auto characters = characters_of(clean);
    require(characters.has_value(), "a clean text is UTF-8");
    require(characters->size() <= kLongest, "a clean text has at most 1,000 characters");
    require(expected_of(*characters) == clean, "a clean text has no control characters");
    require(core::clean_error_text(clean) == clean, "a clean text stays as it is");
    require(clean.empty() == text.empty(), "something stays something");
    if (const auto valid = characters_of(text)) {
        require(expected_of(*valid) == clean, "valid UTF-8 keeps its characters");
    }
}

}  // namespace
}  // namespace commitq::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace commitq::fuzz;
    check_text(as_text(data, size));
    return 0;
}
