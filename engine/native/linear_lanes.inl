// Helpers on 256 bits, the vectors of one row.

INLINE float from_half(std::uint16_t half) { return _cvtsh_ss(half); }

INLINE __m128i load_half(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

INLINE __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

INLINE float sum_lanes(__m256 lanes) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
