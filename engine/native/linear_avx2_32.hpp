// Types of 32-blocks with AVX2.
#pragma once
#include "linear_avx2_256.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace {

struct Weights32 {
    __m256i q[8];
    __m256 d, m;  // a lane for each block
};

template <Type type> struct Kind32 {
    using Traits = Traits32<type>;
    using Weights = Weights32;
    static constexpr std::size_t group_bytes = 8 * Traits::bytes;

    INLINE std::size_t groups(const RowRange& rows) { return (rows.row_bytes / Traits::bytes + 7) / 8; }

    INLINE __m256i values(const std::uint8_t* block) {
        const std::uint8_t* packed = block + Traits::values_at;
        if constexpr (Traits::packing == Packing::bytes) return load(packed);
        if constexpr (Traits::packing == Packing::levels) return unpack_level_bytes(packed);
        const __m256i low = unpack_halves(packed);
        if constexpr (Traits::fifth_at == 0) return low;
        // Each byte of the word to eight places, of which each tests its bit.
        const __m256i bits = _mm256_set1_epi32(read<int>(block + Traits::fifth_at));
        const __m256i spread = _mm256_shuffle_epi8(
            bits, _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
        const __m256i masks = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
        const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, masks), masks);
        return _mm256_or_si256(low, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
    }

    // The half floats at `offset` of eight blocks.
    INLINE __m256 eight(const std::uint8_t* blocks, std::size_t offset) {
        std::uint16_t halves[8];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8; ++i) halves[i] = read<std::uint16_t>(blocks + i * Traits::bytes + offset);
        return from_halves(halves);
    }

    INLINE void unpack_group(const std::uint8_t* row, std::size_t group, std::size_t row_bytes, Weights& out) {
        const std::uint8_t* blocks = row + group * 8 * Traits::bytes;
        const std::size_t left = row_bytes / Traits::bytes - group * 8;
        if (left < 8) return unpack_last(blocks, left, out);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8; ++i) out.q[i] = values(blocks + i * Traits::bytes);
        out.d = eight(blocks, 0);
        if constexpr (Traits::has_m) out.m = eight(blocks, 2);
    }

    static __attribute__((noinline)) void unpack_last(const std::uint8_t* blocks, std::size_t count, Weights& out) {
        Blocks32 plain;
        unpack_blocks<type>(blocks, count, plain);
        for (int i = 0; i < 8; ++i) out.q[i] = load(plain.q + 32 * i);
        out.d = from_halves(plain.d);
        if constexpr (Traits::has_m) out.m = from_halves(plain.m);
    }

    INLINE __m256i dot(__m256i weights, const std::int8_t* q) {
        return _mm256_madd_epi16(products<Traits::values>(weights, q), _mm256_set1_epi16(1));
    }

    // The dot products of eight blocks, a lane for each.
    INLINE __m256i dots(const Weights& weights, const std::int8_t* q) {
        __m256i quarter[2];
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
            const __m256i* w = weights.q + 4 * half;
            const std::int8_t* a = q + 128 * half;
            quarter[half] = _mm256_hadd_epi32(_mm256_hadd_epi32(dot(w[0], a), dot(w[1], a + 32)),
                                              _mm256_hadd_epi32(dot(w[2], a + 64), dot(w[3], a + 96)));
        }
        return _mm256_add_epi32(_mm256_permute2x128_si256(quarter[0], quarter[1], 0x20),
                                _mm256_permute2x128_si256(quarter[0], quarter[1], 0x31));
    }

    // Adds the products of eight blocks of weights and of activations, a block in each lane, for each of n columns.
    template <int n> INLINE void add(const Weights& weights, const Activations& x, const std::size_t* at, __m256* out) {
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            __m256i products = dots(weights, x.of_32.data()[at[c]].q);
            const __m256 scales = _mm256_loadu_ps(x.scales_32.data() + at[c] * 8);
            if constexpr (Traits::offset != 0 || Traits::has_m) {
                const __m256i all = load(x.of_32.data()[at[c]].sums);
                if constexpr (Traits::has_m)
                    out[c] = _mm256_fmadd_ps(_mm256_mul_ps(weights.m, scales), _mm256_cvtepi32_ps(all), out[c]);
                else products = _mm256_sub_epi32(products, _mm256_mullo_epi32(all, _mm256_set1_epi32(Traits::offset)));
            }
            out[c] = _mm256_fmadd_ps(_mm256_mul_ps(weights.d, scales), _mm256_cvtepi32_ps(products), out[c]);
        }
    }
};

}  // namespace

#pragma GCC pop_options
