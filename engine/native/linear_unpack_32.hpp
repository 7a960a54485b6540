// The types of 32-blocks.
#pragma once
#include "linear_blocks.hpp"
#include "linear_unpack_iq.hpp"

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
