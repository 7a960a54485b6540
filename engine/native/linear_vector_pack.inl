// Activations to int8, 256 bits at a time.

// The largest magnitude; compared as integers, in which NaN is above all numbers.
INLINE float largest(const float* x, int count) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (int i = 0; i < count; i += 8) most = _mm256_max_epi32(most, _mm256_and_si256(load(x + i), magnitude));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1))));
}

// Thirty-two values to bytes; gives their sums over 4 values each.
INLINE __m256i quantise(const float* x, float inverse, __m256i& bytes) {
    const __m256 by = _mm256_set1_ps(inverse);
    __m256i values[4];
    for (int i = 0; i < 4; ++i) values[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), by));
    const __m256i low = _mm256_packs_epi32(values[0], values[1]), high = _mm256_packs_epi32(values[2], values[3]);
    const __m256i words = _mm256_packs_epi16(low, high);
    bytes = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
}

INLINE int sum_four(__m128i lanes) {
    lanes = _mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, 0xb1)));
}

static void pack_256(Activations& x, std::size_t column) {
    const float* in = x.x + column * x.n_inputs;
    for (std::size_t group = 0; group < x.n_inputs / group_size; ++group, in += group_size) {
        const std::size_t at = group * x.n_columns + column;
        const float most = largest(in, group_size), inverse = inverse_scale(most);
        x.scales_256.data()[at] = scale_of(most);
        for (std::size_t i = 0; i < 8; ++i) {
            __m256i bytes;
            const __m256i fours = quantise(in + 32 * i, inverse, bytes);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(x.of_256.data()[at].q + 32 * i), bytes);
            std::int16_t* sums = x.of_256.data()[at].sums + 2 * i;
            sums[0] = static_cast<std::int16_t>(sum_four(_mm256_castsi256_si128(fours)));
            sums[1] = static_cast<std::int16_t>(sum_four(_mm256_extracti128_si256(fours, 1)));
        }
    }
}

static void pack_32(Activations& x, std::size_t column) {
    const float* in = x.x + column * x.n_inputs;
    const std::size_t n_blocks = x.n_inputs / 32;
    for (std::size_t block = 0; block < (n_blocks + 7) / 8 * 8; ++block, in += 32) {
        const std::size_t at = block / 8 * x.n_columns + column, place = block % 8;
        Group32& group = x.of_32.data()[at];
        const float most = block < n_blocks ? largest(in, 32) : 0;
        x.scales_32.data()[at * 8 + place] = short_scale_of(most);
        group.sums[place] = 0;
        if (block >= n_blocks) {
            store_block(group.q, place, __m256i{});
            continue;
        }
        __m256i bytes;
        const __m256i fours = quantise(in, inverse_scale(most), bytes);
        store_block(group.q, place, bytes);
        group.sums[place] =
            sum_four(_mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1)));
    }
}
