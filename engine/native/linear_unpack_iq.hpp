// The IQ types: values that are looked up.
#pragma once
#include "linear_blocks.hpp"
#include "linear_tables.hpp"

// Thirty-two values of the sixteen uneven levels of IQ4_NL and IQ4_XS.
INLINE void unpack_levels(const std::uint8_t* packed, std::uint8_t* out) {
    for (int i = 0; i < 16; ++i) {
        out[i] = iq_tables.levels[packed[i] & 15];
        out[16 + i] = iq_tables.levels[packed[i] >> 4];
    }
}

template <> struct Traits256<Type::IQ4_XS> {
    static constexpr std::size_t bytes = 136;
    static constexpr Bytes values = Bytes::signed_;
    static constexpr Lows lows = Lows::none;
    static constexpr float factor = 1;
    INLINE void unpack_scales(const std::uint8_t* block, Block256& out) {
        const auto high = read<std::uint16_t>(block + 2);
        out.d = read<std::uint16_t>(block);
        out.dmin = 0;
        for (int i = 0; i < 8; ++i) {
            const int scale = (block[4 + i / 2] >> (i % 2 * 4) & 15) | (high >> (2 * i) & 3) << 4;
            out.scales[2 * i] = out.scales[2 * i + 1] = static_cast<std::int16_t>(scale - 32);
        }
    }
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        unpack_scales(block, out);
        for (int part = 0; part < 8; ++part) unpack_levels(block + 8 + 16 * part, out.q + 32 * part);
    }
};

// The grids of the IQ types: bytes of a lattice point, and a sign for each. Values become 64 + value, unsigned.
INLINE void put_eight(std::uint8_t* out, std::uint64_t grid, unsigned signs) {
    constexpr std::uint64_t middle = 0x4040404040404040;
    const std::uint64_t value = middle + grid - 2 * (grid & iq_tables.byte_mask[signs]);
    std::memcpy(out, &value, sizeof value);
}

INLINE void iq_scale(Block256& out, int sixteenth, int scale) {
    out.scales[sixteenth] = static_cast<std::int16_t>(2 * scale + 1);
    out.lows[sixteenth] = static_cast<std::int16_t>(64 * out.scales[sixteenth]);
}

template <> struct Traits256<Type::IQ2_XXS> {
    static constexpr std::size_t bytes = 66;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::offset;
    static constexpr int offset = 64;
    static constexpr float factor = 0.125f;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block);
        out.dmin = 0;
        for (int part = 0; part < 8; ++part) {
            const std::uint8_t* points = block + 2 + 8 * part;
            const auto word = read<std::uint32_t>(points + 4);
            for (int side = 0; side < 2; ++side) iq_scale(out, 2 * part + side, static_cast<int>(word >> 28));
            for (int i = 0; i < 4; ++i)
                put_eight(out.q + 32 * part + 8 * i, iq_tables.iq2_xxs[points[i]],
                          iq_tables.signs[word >> (7 * i) & 127]);
        }
    }
};

template <> struct Traits256<Type::IQ2_XS> {
    static constexpr std::size_t bytes = 74;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::offset;
    static constexpr int offset = 64;
    static constexpr float factor = 0.125f;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block);
        out.dmin = 0;
        for (int i = 0; i < 16; ++i) iq_scale(out, i, block[66 + i / 2] >> (i % 2 * 4) & 15);
        for (int i = 0; i < 32; ++i) {
            const auto word = read<std::uint16_t>(block + 2 + 2 * i);
            put_eight(out.q + 8 * i, iq_tables.iq2_xs[word & 511], iq_tables.signs[word >> 9]);
        }
    }
};

template <> struct Traits256<Type::IQ2_S> {
    static constexpr std::size_t bytes = 82;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::offset;
    static constexpr int offset = 64;
    static constexpr float factor = 0.125f;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block);
        out.dmin = 0;
        for (int i = 0; i < 16; ++i) iq_scale(out, i, block[74 + i / 2] >> (i % 2 * 4) & 15);
        for (int i = 0; i < 32; ++i) {
            const int point = block[2 + i] | (block[66 + i / 4] >> (i % 4 * 2) & 3) << 8;
            put_eight(out.q + 8 * i, iq_tables.iq2_s[point], block[34 + i]);
        }
    }
};

template <> struct Traits256<Type::IQ3_XXS> {
    static constexpr std::size_t bytes = 98;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::offset;
    static constexpr int offset = 64;
    static constexpr float factor = 0.25f;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block);
        out.dmin = 0;
        for (int part = 0; part < 8; ++part) {
            const std::uint8_t* points = block + 2 + 8 * part;
            const auto word = read<std::uint32_t>(block + 66 + 4 * part);
            for (int side = 0; side < 2; ++side) iq_scale(out, 2 * part + side, static_cast<int>(word >> 28));
            for (int i = 0; i < 4; ++i) {
                const std::uint64_t low = iq_tables.iq3_xxs[points[2 * i]], high = iq_tables.iq3_xxs[points[2 * i + 1]];
                put_eight(out.q + 32 * part + 8 * i, low | high << 32, iq_tables.signs[word >> (7 * i) & 127]);
            }
        }
    }
};

template <> struct Traits256<Type::IQ3_S> {
    static constexpr std::size_t bytes = 110;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::offset;
    static constexpr int offset = 64;
    static constexpr float factor = 1;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block);
        out.dmin = 0;
        for (int i = 0; i < 16; ++i) iq_scale(out, i, block[106 + i / 4] >> (i / 2 % 2 * 4) & 15);
        for (int i = 0; i < 32; ++i) {
            const int high_bits = block[66 + i / 4] >> (i % 4 * 2);
            const std::uint64_t low = iq_tables.iq3_s[block[2 + 2 * i] | (high_bits & 1) << 8];
            const std::uint64_t high = iq_tables.iq3_s[block[3 + 2 * i] | (high_bits >> 1 & 1) << 8];
            put_eight(out.q + 8 * i, low | high << 32, block[74 + i]);
        }
    }
};
