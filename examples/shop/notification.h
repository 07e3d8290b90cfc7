// What is sent for an order: one job each.
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shop {

/// The notifications of every order, which are job types.
inline constexpr std::array<std::string_view, 2> kNotifications{"email.confirmation", "warehouse.pick"};

// A notification's payload is {"shop_order":LINE,"order":JSON}.
inline constexpr std::string_view kPayloadStart = R"({"shop_order":)";
inline constexpr std::string_view kPayloadMiddle = R"(,"order":)";
inline constexpr std::string_view kPayloadEnd = "}";

inline std::string payload_of(std::uint64_t line, std::string_view json) {
    return fmt::format("{}{}{}{}{}", kPayloadStart, line, kPayloadMiddle, json, kPayloadEnd);
}

/// The order that a payload is about.
inline std::optional<std::uint64_t> line_of(std::string_view payload) {
    if (!payload.starts_with(kPayloadStart)) {
        return std::nullopt;
    }
    payload.remove_prefix(kPayloadStart.size());
    std::uint64_t line = 0;
    const auto [end, error] = std::from_chars(payload.data(), payload.data() + payload.size(), line);
    return error == std::errc{} && end != payload.data() ? std::optional{line} : std::nullopt;
}

}  // namespace shop
