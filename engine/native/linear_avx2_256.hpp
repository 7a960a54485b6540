// Types of 256-blocks with AVX2.
#pragma once
#include "linear_avx2.hpp"
#include "linear_unpack.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace {

struct Weights256 {
    __m256i q[8], scales[8];  // scales: each scale beside the products that it multiplies
    __m256i lows;
    float d, dmin;
};

INLINE __m256i words(int low, int high) {
    return _mm256_setr_m128i(_mm_set1_epi16(static_cast<short>((2 * low) | (2 * low + 1) << 8)),
                             _mm_set1_epi16(static_cast<short>((2 * high) | (2 * high + 1) << 8)));
}

// Sixteen scales to one for each of the 16 products of each 32 weights.
INLINE void spread_scales(__m256i scales, __m256i* out) {
    const __m256i first = _mm256_permute2x128_si256(scales, scales, 0x00);
    const __m256i second = _mm256_permute2x128_si256(scales, scales, 0x11);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        out[i] = _mm256_shuffle_epi8(first, words(2 * i, 2 * i + 1));
        out[4 + i] = _mm256_shuffle_epi8(second, words(2 * i, 2 * i + 1));
    }
}

template <Type type> FORCED void unpack(const std::uint8_t* block, Weights256& out) {
    using Traits = Traits256<type>;
    Block256 plain;
    Traits::unpack(block, plain);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) out.q[i] = load(plain.q + 32 * i);
    spread_scales(load(plain.scales), out.scales);
    if constexpr (Traits::lows != Lows::none) out.lows = load(plain.lows);
    out.d = from_half(plain.d) * Traits::factor;
    if constexpr (Traits::lows == Lows::scaled) out.dmin = from_half(plain.dmin);
}

// Eight bytes, each twice, as sixteen words.
INLINE __m256i twice(std::uint64_t bytes) {
    const __m128i once = _mm_cvtsi64_si128(static_cast<long long>(bytes));
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(once, once));
}

INLINE void unpack_k_head(const std::uint8_t* block, Weights256& out) {
    std::uint64_t scales, lows;
    k_scales(block + 4, scales, lows);
    spread_scales(twice(scales), out.scales);
    out.lows = twice(lows);
    out.d = from_half(read<std::uint16_t>(block));
    out.dmin = from_half(read<std::uint16_t>(block + 2));
}

template <> FORCED void unpack<Type::Q4_K>(const std::uint8_t* block, Weights256& out) {
    const __m256i low = _mm256_set1_epi8(15);
    unpack_k_head(block, out);
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
        const __m256i bytes = load(block + 16 + 32 * part);
        out.q[2 * part] = _mm256_and_si256(bytes, low);
        out.q[2 * part + 1] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low);
    }
}

template <> FORCED void unpack<Type::Q5_K>(const std::uint8_t* block, Weights256& out) {
    const __m256i low = _mm256_set1_epi8(15), fifth = _mm256_set1_epi8(16), high = load(block + 16);
    unpack_k_head(block, out);
    // Bit n of `high` belongs to values 32 n and on; it is moved to bit 4.
    const __m256i up[4] = {_mm256_slli_epi16(high, 4), _mm256_slli_epi16(high, 3), _mm256_slli_epi16(high, 2),
                           _mm256_slli_epi16(high, 1)};
    const __m256i down[4] = {high, _mm256_srli_epi16(high, 1), _mm256_srli_epi16(high, 2), _mm256_srli_epi16(high, 3)};
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
        const __m256i bytes = load(block + 48 + 32 * part);
        const __m256i even = part < 2 ? up[2 * part] : down[2 * part - 4];
        const __m256i odd = part < 2 ? up[2 * part + 1] : down[2 * part - 3];
        out.q[2 * part] = _mm256_or_si256(_mm256_and_si256(bytes, low), _mm256_and_si256(even, fifth));
        out.q[2 * part + 1] =
            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low), _mm256_and_si256(odd, fifth));
    }
}

template <> FORCED void unpack<Type::Q6_K>(const std::uint8_t* block, Weights256& out) {
    const __m256i low = _mm256_set1_epi8(15), high = _mm256_set1_epi8(48);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
        const __m256i first = load(block + 64 * half), second = load(block + 64 * half + 32);
        const __m256i bits = load(block + 128 + 32 * half);
        __m256i* q = out.q + 4 * half;
        q[0] = _mm256_or_si256(_mm256_and_si256(first, low), _mm256_and_si256(_mm256_slli_epi16(bits, 4), high));
        q[1] = _mm256_or_si256(_mm256_and_si256(second, low), _mm256_and_si256(_mm256_slli_epi16(bits, 2), high));
        q[2] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 4), low), _mm256_and_si256(bits, high));
        q[3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 4), low),
                               _mm256_and_si256(_mm256_srli_epi16(bits, 2), high));
    }
    const auto packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 192));
    const __m256i scales = _mm256_cvtepi8_epi16(packed);
    spread_scales(scales, out.scales);
    out.lows = _mm256_slli_epi16(scales, 5);
    out.d = from_half(read<std::uint16_t>(block + 208));
}

// Thirty-two values of four bits: low halves first, then high halves.
INLINE __m256i unpack_halves(const std::uint8_t* packed) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(packed));
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
}

// The same as numbers of uneven levels.
INLINE __m256i unpack_level_bytes(const std::uint8_t* packed) {
    const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(iq_tables.levels));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), unpack_halves(packed));
}

template <> FORCED void unpack<Type::IQ4_XS>(const std::uint8_t* block, Weights256& out) {
    Block256 plain;
    Traits256<Type::IQ4_XS>::unpack_scales(block, plain);
    spread_scales(load(plain.scales), out.scales);
    out.d = from_half(plain.d);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) out.q[i] = unpack_level_bytes(block + 8 + 16 * i);
}

template <Type type> struct Kind256 {
    using Traits = Traits256<type>;
    using Weights = Weights256;
    static constexpr std::size_t group_bytes = Traits::bytes;

    INLINE std::size_t groups(const RowRange& rows) { return rows.row_bytes / Traits::bytes; }

    INLINE void unpack_group(const std::uint8_t* row, std::size_t group, std::size_t, Weights& out) {
        unpack<type>(row + group * Traits::bytes, out);
    }

    // Adds the products of one block of weights and one of activations for each of n columns.
    template <int n>
    INLINE void add(const Weights& weights, const Activations& x, const std::size_t* at, __m256* sums) {
        const Group256* groups = x.of_256.data();
        __m256i dots[n];
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) dots[c] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
#pragma GCC unroll 4
            for (int c = 0; c < n; ++c) {
                const __m256i pairs = products<Traits::values>(weights.q[i], groups[at[c]].q + 32 * i);
                dots[c] = _mm256_add_epi32(dots[c], _mm256_madd_epi16(pairs, weights.scales[i]));
                asm("" : "+x"(dots[c]));
            }
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            const float scale = x.scales_256.data()[at[c]];
            if constexpr (Traits::lows != Lows::none) {
                const __m256i lows = _mm256_madd_epi16(weights.lows, load(groups[at[c]].sums));
                if constexpr (Traits::lows == Lows::offset) dots[c] = _mm256_sub_epi32(dots[c], lows);
                else
                    sums[c] = _mm256_fnmadd_ps(_mm256_set1_ps(weights.dmin * scale), _mm256_cvtepi32_ps(lows), sums[c]);
            }
            sums[c] = _mm256_fmadd_ps(_mm256_set1_ps(weights.d * scale), _mm256_cvtepi32_ps(dots[c]), sums[c]);
        }
    }
};

}  // namespace

#pragma GCC pop_options
