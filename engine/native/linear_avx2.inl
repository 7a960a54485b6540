// What the vector kernels ask of an instruction set: AVX2.
#include "linear_lanes.inl"

using Ints = __m256i;
using Floats = __m256;

// Rows of weights that lie side by side in a vector, 256 bits of each.
constexpr std::size_t rows_at_once = 1;

// A vector of `row(0)`, ...: 256 bits of each row, halves to become floats, or one number for all its lanes.
template <typename Row> INLINE Ints each_row(const Row& row) { return row(0); }
template <typename Row> INLINE Floats halves_of_each_row(const Row& row) { return _mm256_cvtph_ps(row(0)); }
template <typename Row> INLINE Floats number_of_each_row(const Row& row) { return _mm256_set1_ps(row(0)); }

// The same for every row.
INLINE Ints for_each_row(__m256i values) { return values; }
INLINE Floats for_each_row(__m256 values) { return values; }
INLINE Floats for_each_row(float number) { return _mm256_set1_ps(number); }

INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
INLINE Floats fma_negated(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
INLINE Ints shuffle_bytes(Ints bytes, Ints places) { return _mm256_shuffle_epi8(bytes, places); }
INLINE Ints add_pairs(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }

// One half of every row, twice.
template <int half> INLINE Ints repeat_half(Ints rows) {
    return _mm256_permute2x128_si256(rows, rows, half == 0 ? 0x00 : 0x11);
}

// Bytes with 16 added where the row's word has its bit set.
template <typename Row> INLINE Ints add_sixteens(Ints bytes, const Row& word) {
    // Each byte of the word to eight places, of which each tests its bit.
    const __m256i spread = _mm256_shuffle_epi8(
        _mm256_set1_epi32(word(0)),
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i masks = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, masks), masks);
    return _mm256_or_si256(bytes, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
}

// Sums of neighbouring products, sixteen bits each. Unsigned weights are below 128, activations within +-127, so
// nothing saturates; of signed weights the sign goes over to the activations.
template <Bytes values> INLINE Ints products(Ints weights, Ints activations) {
    if constexpr (values == Bytes::unsigned_) return _mm256_maddubs_epi16(weights, activations);
    return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(activations, weights));
}

// sums + products * scales.
template <Bytes values> INLINE Ints add_products(Ints sums, Ints weights, Ints activations, Ints scales) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(products<values>(weights, activations), scales));
}

// The dot products of eight 32-blocks, a lane for each, less `shift` times the activations' sums. Blocks lie one behind
// the other.
template <Bytes values> constexpr int shift = 0;

template <Bytes values> INLINE void arrange_blocks(Ints*) {}

INLINE void store_block(std::int8_t* group, std::size_t place, __m256i activations) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(group + 32 * place), activations);
}

template <Bytes values> INLINE Ints dot_blocks(const Ints* weights, const std::int8_t* activations) {
    const auto dot = [&](int i) __attribute__((always_inline)) {
        return _mm256_madd_epi16(products<values>(weights[i], load(activations + 32 * i)), _mm256_set1_epi16(1));
    };
    __m256i quarter[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
        const int i = 4 * half;
        quarter[half] =
            _mm256_hadd_epi32(_mm256_hadd_epi32(dot(i), dot(i + 1)), _mm256_hadd_epi32(dot(i + 2), dot(i + 3)));
    }
    return _mm256_add_epi32(_mm256_permute2x128_si256(quarter[0], quarter[1], 0x20),
                            _mm256_permute2x128_si256(quarter[0], quarter[1], 0x31));
}

// Adds up the lanes of each row, of `count` rows.
INLINE void store_sums(Floats sums, std::size_t, float* out) { *out = sum_lanes(sums); }
