// Weight blocks to plain bytes with integer scales: the facts of each format, for every instruction set.
#pragma once
#include <cstdint>
#include <cstring>

#include "linear_tables.hpp"
#include "linear_types.hpp"

#define FORCED inline __attribute__((always_inline))
#define INLINE static FORCED

enum class Bytes { unsigned_, signed_ };
enum class Lows { none, offset, scaled };

// 256 weights of a type of 256-blocks. Weight i is d * factor * scales[i / 16] * value, where value is q[i] as the
// type's traits say (unsigned or signed), less
//   offset: d * factor * lows[i / 16]     (values shifted to be unsigned)
//   scaled: dmin * lows[i / 16]
struct alignas(32) Block256 {
    std::uint8_t q[256];
    std::int16_t scales[16], lows[16];
    std::uint16_t d, dmin;  // half floats
};

// Eight 32-blocks: weight i is d[i / 32] * (value - traits' offset) + m[i / 32].
struct alignas(32) Blocks32 {
    std::uint8_t q[256];
    std::uint16_t d[8], m[8];  // half floats
};

template <typename T> INLINE T read(const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Thirty-two values of the sixteen uneven levels of IQ4_NL and IQ4_XS.
INLINE void unpack_levels(const std::uint8_t* packed, std::uint8_t* out) {
    for (int i = 0; i < 16; ++i) {
        out[i] = iq_tables.levels[packed[i] & 15];
        out[16 + i] = iq_tables.levels[packed[i] >> 4];
    }
}

template <Type type> struct Traits256;
template <Type type> struct Traits32;

// Types of 256-blocks ------------------------------------------------------------------------------------------------

// The eight six-bit scales and lows of Q4_K and Q5_K, as bytes.
INLINE void k_scales(const std::uint8_t* packed, std::uint64_t& scales, std::uint64_t& lows) {
    const auto a = read<std::uint32_t>(packed), b = read<std::uint32_t>(packed + 4), c = read<std::uint32_t>(packed + 8);
    const std::uint64_t high_scales = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
    const std::uint64_t high_lows = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;
    scales = (a & 0x3f3f3f3f) | high_scales << 32;
    lows = (b & 0x3f3f3f3f) | high_lows << 32;
}

INLINE void spread_k_scales(const std::uint8_t* packed, Block256& out) {
    std::uint64_t scales, lows;
    k_scales(packed, scales, lows);
    for (int i = 0; i < 16; ++i) {
        out.scales[i] = static_cast<std::int16_t>(scales >> (i / 2 * 8) & 255);
        out.lows[i] = static_cast<std::int16_t>(lows >> (i / 2 * 8) & 255);
    }
}

template <> struct Traits256<Type::Q4_K> {
    static constexpr std::size_t bytes = 144;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::scaled;
    static constexpr float factor = 1;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block);
        out.dmin = read<std::uint16_t>(block + 2);
        spread_k_scales(block + 4, out);
        for (int part = 0; part < 4; ++part)
            for (int i = 0; i < 32; ++i) {
                const std::uint8_t byte = block[16 + part * 32 + i];
                out.q[part * 64 + i] = byte & 15;
                out.q[part * 64 + 32 + i] = byte >> 4;
            }
    }
};

template <> struct Traits256<Type::Q5_K> {
    static constexpr std::size_t bytes = 176;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::scaled;
    static constexpr float factor = 1;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block);
        out.dmin = read<std::uint16_t>(block + 2);
        spread_k_scales(block + 4, out);
        for (int part = 0; part < 4; ++part)
            for (int i = 0; i < 32; ++i) {
                const std::uint8_t byte = block[48 + part * 32 + i], high = block[16 + i];
                out.q[part * 64 + i] = static_cast<std::uint8_t>((byte & 15) | (high >> (2 * part) & 1) << 4);
                out.q[part * 64 + 32 + i] = static_cast<std::uint8_t>(byte >> 4 | (high >> (2 * part + 1) & 1) << 4);
            }
    }
};

template <> struct Traits256<Type::Q6_K> {
    static constexpr std::size_t bytes = 210;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::offset;
    static constexpr int offset = 32;
    static constexpr float factor = 1;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block + 208);
        out.dmin = 0;
        for (int i = 0; i < 16; ++i) {
            out.scales[i] = static_cast<std::int8_t>(block[192 + i]);
            out.lows[i] = static_cast<std::int16_t>(offset * out.scales[i]);
        }
        for (int half = 0; half < 2; ++half)
            for (int i = 0; i < 32; ++i) {
                const std::uint8_t* low = block + 64 * half;
                const std::uint8_t high = block[128 + 32 * half + i];
                std::uint8_t* q = out.q + 128 * half + i;
                q[0] = static_cast<std::uint8_t>((low[i] & 15) | (high & 3) << 4);
                q[32] = static_cast<std::uint8_t>((low[32 + i] & 15) | (high >> 2 & 3) << 4);
                q[64] = static_cast<std::uint8_t>(low[i] >> 4 | (high >> 4 & 3) << 4);
                q[96] = static_cast<std::uint8_t>(low[32 + i] >> 4 | (high >> 6) << 4);
            }
    }
};

template <> struct Traits256<Type::Q2_K> {
    static constexpr std::size_t bytes = 84;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::scaled;
    static constexpr float factor = 1;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        out.d = read<std::uint16_t>(block + 80);
        out.dmin = read<std::uint16_t>(block + 82);
        for (int i = 0; i < 16; ++i) {
            out.scales[i] = block[i] & 15;
            out.lows[i] = block[i] >> 4;
        }
        for (int half = 0; half < 2; ++half)
            for (int part = 0; part < 4; ++part)
                for (int i = 0; i < 32; ++i)
                    out.q[128 * half + 32 * part + i] = block[16 + 32 * half + i] >> (2 * part) & 3;
    }
};

template <> struct Traits256<Type::Q3_K> {
    static constexpr std::size_t bytes = 110;
    static constexpr Bytes values = Bytes::unsigned_;
    static constexpr Lows lows = Lows::offset;
    static constexpr int offset = 4;
    static constexpr float factor = 1;
    INLINE void unpack(const std::uint8_t* block, Block256& out) {
        const std::uint8_t* scales = block + 96;
        out.d = read<std::uint16_t>(block + 108);
        out.dmin = 0;
        for (int i = 0; i < 16; ++i) {
            const int low = scales[i % 8] >> (i / 8 * 4) & 15, high = scales[8 + i % 4] >> (i / 4 * 2) & 3;
            out.scales[i] = static_cast<std::int16_t>((low | high << 4) - 32);
            out.lows[i] = static_cast<std::int16_t>(offset * out.scales[i]);
        }
        for (int half = 0; half < 2; ++half)
            for (int part = 0; part < 4; ++part)
                for (int i = 0; i < 32; ++i) {
                    const int low = block[32 + 32 * half + i] >> (2 * part) & 3, high = block[i] >> (4 * half + part) & 1;
                    out.q[128 * half + 32 * part + i] = static_cast<std::uint8_t>(low | high << 2);
                }
    }
};

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

// Types of 32-blocks -------------------------------------------------------------------------------------------------

// How the values of a 32-block lie in it: four bits each (low halves first, then high halves), the same as numbers of
// uneven levels, or whole bytes.
enum class Packing { halves, levels, bytes };

// A block begins with d; m, where there is one, follows. The fifth bits of all values are one word (at 0: none).
template <Packing packing_, std::size_t bytes_, std::size_t values_at_, std::size_t fifth_at_, int offset_, bool has_m_>
struct Layout32 {
    static constexpr Packing packing = packing_;
    static constexpr std::size_t bytes = bytes_, values_at = values_at_, fifth_at = fifth_at_;
    static constexpr int offset = offset_;
    static constexpr bool has_m = has_m_;
    static constexpr Bytes values = packing == Packing::halves ? Bytes::unsigned_ : Bytes::signed_;
};

template <> struct Traits32<Type::Q4_0> : Layout32<Packing::halves, 18, 2, 0, 8, false> {};
template <> struct Traits32<Type::Q4_1> : Layout32<Packing::halves, 20, 4, 0, 0, true> {};
template <> struct Traits32<Type::Q5_0> : Layout32<Packing::halves, 22, 6, 2, 16, false> {};
template <> struct Traits32<Type::Q5_1> : Layout32<Packing::halves, 24, 8, 4, 0, true> {};
template <> struct Traits32<Type::Q8_0> : Layout32<Packing::bytes, 34, 2, 0, 0, false> {};
template <> struct Traits32<Type::IQ4_NL> : Layout32<Packing::levels, 18, 2, 0, 0, false> {};

template <Type type> INLINE void unpack_values(const std::uint8_t* block, std::uint8_t* out) {
    using Traits = Traits32<type>;
    const std::uint8_t* packed = block + Traits::values_at;
    if constexpr (Traits::packing == Packing::levels) return unpack_levels(packed, out);
    if constexpr (Traits::packing == Packing::bytes) {
        std::memcpy(out, packed, 32);
        return;
    }
    for (int i = 0; i < 16; ++i) {
        out[i] = packed[i] & 15;
        out[16 + i] = packed[i] >> 4;
    }
    if constexpr (Traits::fifth_at != 0) {
        const auto bits = read<std::uint32_t>(block + Traits::fifth_at);
        for (int i = 0; i < 32; ++i) out[i] = static_cast<std::uint8_t>(out[i] | (bits >> i & 1) << 4);
    }
}

// Up to eight blocks; what is missing at the end of a row counts as zero.
template <Type type> INLINE void unpack_blocks(const std::uint8_t* blocks, std::size_t count, Blocks32& out) {
    for (std::size_t at = 0; at < count; ++at, blocks += Traits32<type>::bytes) {
        out.d[at] = read<std::uint16_t>(blocks);
        if constexpr (Traits32<type>::has_m) out.m[at] = read<std::uint16_t>(blocks + 2);
        unpack_values<type>(blocks, out.q + 32 * at);
    }
    for (std::size_t at = count; at < 8; ++at) {
        out.d[at] = out.m[at] = 0;
        std::memset(out.q + 32 * at, 0, 32);
    }
}
