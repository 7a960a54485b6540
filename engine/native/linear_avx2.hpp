// What all AVX2 kernels share. Their headers turn AVX2 on behind their own includes, so that no shared inline
// function comes to need it.
#pragma once
#include <immintrin.h>

#include "linear_blocks.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace {

INLINE float from_half(std::uint16_t half) { return _cvtsh_ss(half); }

INLINE __m256 from_halves(const std::uint16_t* halves) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}

INLINE __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

INLINE float sum_lanes(__m256 lanes) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// Sums of neighbouring products, sixteen bits each. Unsigned weights are below 128, activations within +-127, so
// nothing saturates; of signed weights the sign goes over to the activations.
template <Bytes values> INLINE __m256i products(__m256i weights, const std::int8_t* activations) {
    if constexpr (values == Bytes::unsigned_) return _mm256_maddubs_epi16(weights, load(activations));
    return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(load(activations), weights));
}

}  // namespace

#pragma GCC pop_options
