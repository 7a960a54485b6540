// The K types: 256 values of two to six bits.
#pragma once
#include "linear_blocks.hpp"

// The eight six-bit scales and lows of Q4_K and Q5_K, as bytes.
INLINE void k_scales(const std::uint8_t* packed, std::uint64_t& scales, std::uint64_t& lows) {
    std::uint32_t a, b, c;
    std::memcpy(&a, packed, 4), std::memcpy(&b, packed + 4, 4), std::memcpy(&c, packed + 8, 4);
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
                    const int low = block[32 + 32 * half + i] >> (2 * part) & 3;
                    const int high = block[i] >> (4 * half + part) & 1;
                    out.q[128 * half + 32 * part + i] = static_cast<std::uint8_t>(low | high << 2);
                }
    }
};
