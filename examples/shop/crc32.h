// The checksum that SQL's CRC32() gives.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shop {

inline std::uint32_t crc32(std::string_view bytes) {
    static constexpr auto kTable = [] {
        std::array<std::uint32_t, 256> table{};
        for (std::uint32_t i = 0; i < table.size(); ++i) {
            table[i] = i;
            for (int bit = 0; bit < 8; ++bit) {
                table[i] = (table[i] >> 1U) ^ ((table[i] & 1U) != 0 ? 0xedb88320U : 0U);
            }
        }
        return table;
    }();
    std::uint32_t crc = ~0U;
    for (const char byte : bytes) {
        crc = (crc >> 8U) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
    }
    return ~crc;
}

}  // namespace shop
