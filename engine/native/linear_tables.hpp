// Tables that the IQ types look their values up in; filled from Python when the package is imported.
#pragma once
#include <cstdint>

struct IqTables {
    std::uint64_t iq2_xxs[256], iq2_xs[512], iq2_s[1024];  // eight bytes a point
    std::uint32_t iq3_xxs[256], iq3_s[512];                // four bytes a point
    std::uint8_t signs[128];                               // seven bits of sign to eight
    std::uint8_t levels[16];                               // signed bytes
    std::uint64_t byte_mask[256];                          // each bit spread to a byte of ones
};

extern IqTables iq_tables;
