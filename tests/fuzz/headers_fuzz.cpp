// Headers: are taken exactly when they are as `Headers` says, and then read back as they were; whatever stands in the column
// reads as headers that could have been sent.
#include "fuzz/check.h"

#include <core/headers.h>
#include <fuzzer/FuzzedDataProvider.h>

namespace commitq::fuzz {
namespace {

bool is_name(std::string_view name) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return !name.empty() && name.size() <= 64 && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool is_value(std::string_view value) {
    const auto characters = characters_of(value);
    return characters && std::none_of(characters->begin(), characters->end(), is_control_character);
}

/// @returns whether @p headers are allowed but for their size.
bool check_headers(const Headers& headers) {
    bool allowed = true;
    std::size_t bytes = 0;
    for (const auto& [name, value] : headers) {
        allowed = allowed && is_name(name) && is_value(value);
        bytes += name.size() + value.size() + 3;
    }
    const bool taken = !refusal([&] { core::check_headers("enqueue", headers); });
    require(taken == (allowed && bytes <= 4'096), "headers are taken exactly when they are as documented");
    if (allowed) {
        const std::string text = core::encode_headers(headers);
        require(text.size() == bytes, "headers count three bytes more each");
        require(core::decode_headers(text) == headers, "headers read back");
    }
    return allowed;
}

}  // namespace
}  // namespace commitq::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace commitq;
    fuzz::require(fuzz::check_headers(core::decode_headers(fuzz::as_text(data, size))),
                  "what is read could have been sent");
    FuzzedDataProvider input{data, size};
    Headers headers;
    while (input.remaining_bytes() != 0) {
        std::string name = input.ConsumeRandomLengthString(70);
        headers.insert_or_assign(std::move(name), input.ConsumeRandomLengthString(5'000));
    }
    fuzz::check_headers(headers);
    return 0;
}
