// What the vector kernels ask of an instruction set: AVX-512 with byte products (VNNI). Explained in linear_avx2.inl.
#include "linear_lanes.inl"

using Ints = __m512i;
using Floats = __m512;

constexpr std::size_t rows_at_once = 2;

template <typename Row> INLINE Ints each_row(const Row& row) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(row(0)), row(1), 1);
}
template <typename Row> INLINE Floats halves_of_each_row(const Row& row) {
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(1), 1));
}
template <typename Row> INLINE Floats number_of_each_row(const Row& row) {
    return _mm512_mask_mov_ps(_mm512_set1_ps(row(0)), 0xff00, _mm512_set1_ps(row(1)));
}

INLINE Ints for_each_row(__m256i values) { return _mm512_broadcast_i64x4(values); }
INLINE Floats for_each_row(__m256 values) {
    return _mm512_castpd_ps(_mm512_broadcast_f64x4(_mm256_castps_pd(values)));
}
INLINE Floats for_each_row(float number) { return _mm512_set1_ps(number); }

INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
INLINE Floats fma_negated(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
INLINE Ints shuffle_bytes(Ints bytes, Ints places) { return _mm512_shuffle_epi8(bytes, places); }
INLINE Ints add_pairs(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }

template <int half> INLINE Ints repeat_half(Ints rows) {
    return _mm512_shuffle_i64x2(rows, rows, half == 0 ? 0xa0 : 0xf5);
}

template <typename Row> INLINE Ints add_sixteens(Ints bytes, const Row& word) {
    const auto first = static_cast<std::uint32_t>(word(0)), second = static_cast<std::uint32_t>(word(1));
    return _mm512_mask_add_epi8(bytes, first | std::uint64_t{second} << 32, bytes, _mm512_set1_epi8(16));
}

template <Bytes values> INLINE Ints products(Ints weights, Ints activations) {
    if constexpr (values == Bytes::unsigned_) return _mm512_maddubs_epi16(weights, activations);
    const __mmask64 negative = _mm512_movepi8_mask(weights);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(weights),
                                _mm512_mask_sub_epi8(activations, negative, _mm512_setzero_si512(), activations));
}

template <Bytes values> INLINE Ints add_products(Ints sums, Ints weights, Ints activations, Ints scales) {
    return _mm512_dpwssd_epi32(sums, products<values>(weights, activations), scales);
}

// Fours of bytes lie beside those of the other blocks, so that the products of a block meet in its own lane. Signed
// weights become unsigned by 128 more.
template <Bytes values> constexpr int shift = values == Bytes::signed_ ? 128 : 0;

// Fours of eight blocks from block after block to four after four.
template <Bytes values> INLINE void arrange_blocks(Ints* q) {
    if constexpr (values == Bytes::signed_)
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) q[i] = _mm512_xor_si512(q[i], _mm512_set1_epi8(-128));
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    __m512i pairs[8], fours[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        pairs[2 * i] = _mm512_unpacklo_epi32(q[2 * i], q[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_epi32(q[2 * i], q[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half)
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) {
            const __m512i first = pairs[4 * half + side], second = pairs[4 * half + 2 + side];
            fours[4 * half + 2 * side] = _mm512_unpacklo_epi64(first, second);
            fours[4 * half + 2 * side + 1] = _mm512_unpackhi_epi64(first, second);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        q[i] = _mm512_permutex2var_epi64(fours[i], low, fours[4 + i]);
        q[4 + i] = _mm512_permutex2var_epi64(fours[i], high, fours[4 + i]);
    }
}

INLINE void store_block(std::int8_t* group, std::size_t place, __m256i activations) {
    _mm256_i32scatter_epi32(group + 4 * place, _mm256_setr_epi32(0, 32, 64, 96, 128, 160, 192, 224), activations, 1);
}

template <Bytes> INLINE Ints dot_blocks(const Ints* weights, const std::int8_t* activations) {
    Ints dots[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
        dots[i % 2] = _mm512_dpbusd_epi32(dots[i % 2], weights[i], for_each_row(load(activations + 32 * i)));
    return _mm512_add_epi32(dots[0], dots[1]);
}

INLINE void store_sums(Floats sums, std::size_t count, float* out) {
    out[0] = sum_lanes(_mm512_castps512_ps256(sums));
    if (count > 1) out[1] = sum_lanes(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums), 1)));
}
