// Tables that the IQ types look their values up in; filled from Python when the package is imported.
#pragma once
#include <cstddef>
#include <cstdint>

struct IqTables {
    std::uint64_t iq2_xxs[256], iq2_xs[512], iq2_s[1024];  // eight bytes a point
    std::uint32_t iq3_xxs[256], iq3_s[512];                // four bytes a point
    std::uint8_t signs[128];                               // seven bits of sign to eight
    std::uint8_t levels[16];                               // signed bytes
    std::uint64_t byte_mask[256];                          // each bit spread to a byte of ones
};

extern IqTables iq_tables;

inline void fill_byte_masks(IqTables& tables) {
    for (std::size_t bits = 0; bits < 256; ++bits) {
        tables.byte_mask[bits] = 0;
        for (std::size_t bit = 0; bit < 8; ++bit)
            if (bits >> bit & 1) tables.byte_mask[bits] |= 0xffULL << (8 * bit);
    }
}
