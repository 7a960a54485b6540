// Keys and values in the formats of the pools, and attention of one query over one page.

// To half precision, ties to even, and back.
INLINE std::uint16_t to_half(float x) {
#if defined(PASCAL_AVX2)
    return static_cast<std::uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
#else
    std::uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    std::uint32_t half;
    if (magnitude > 0x7f800000) {
        half = 0x7e00;
    } else if (magnitude >= 0x477ff000) {
        half = 0x7c00;
    } else if (magnitude < 0x38800000) {  // subnormal: adding a half makes the sum's last bit 2^-24
        float sum;
        __builtin_memcpy(&sum, &magnitude, sizeof sum);
        sum += 0.5f;
        __builtin_memcpy(&half, &sum, sizeof half);
        half -= 0x3f000000;
    } else {
        half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
#endif
}

INLINE float from_half(std::uint16_t half) {
#if defined(PASCAL_AVX2)
    return _cvtsh_ss(half);
#else
    const std::uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    std::uint32_t bits;
    if (magnitude >= 0x7c00) {
        bits = 0x7f800000 | (magnitude & 0x3ff) << 13;
    } else if (magnitude >= 0x400) {
        bits = (magnitude << 13) + 0x38000000;
    } else {
        const float value = static_cast<float>(magnitude) * 0x1p-24f;
        __builtin_memcpy(&bits, &value, sizeof bits);
    }
    bits |= sign;
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

INLINE std::uint16_t read_half(const std::uint8_t* from) {
    std::uint16_t half;
    __builtin_memcpy(&half, from, sizeof half);
    return half;
}

INLINE float magnitude_of(float x) { return x < 0 ? -x : x; }

// A block of 32 as GGUF files hold it: 8 bits, rounded half away from zero. What is no number becomes 0.
INLINE void pack_q8_0(const float* x, std::uint8_t* to) {
    float most = 0;
    for (std::size_t i = 0; i < kv_block; ++i) most = magnitude_of(x[i]) > most ? magnitude_of(x[i]) : most;
    const float scale = most / 127.0f, inverse = scale == 0 ? 0.0f : 1.0f / scale;
    const std::uint16_t half = to_half(scale);
    __builtin_memcpy(to, &half, sizeof half);
    for (std::size_t i = 0; i < kv_block; ++i) {
        const float steps = x[i] * inverse, whole = magnitude_of(steps) + 0.5f;
        const int level = whole < 128.0f ? static_cast<int>(whole) : 0;
        to[2 + i] = static_cast<std::uint8_t>(steps < 0 ? -level : level);
    }
}

// 4 bits; the value of largest magnitude becomes -8. Value i shares a byte with value i + 16.
INLINE void pack_q4_0(const float* x, std::uint8_t* to) {
    float most = x[0];
    for (std::size_t i = 1; i < kv_block; ++i) most = magnitude_of(x[i]) > magnitude_of(most) ? x[i] : most;
    const float scale = most / -8.0f, inverse = scale == 0 ? 0.0f : 1.0f / scale;
    const std::uint16_t half = to_half(scale);
    __builtin_memcpy(to, &half, sizeof half);
    const auto level = [&](float value) __attribute__((always_inline)) {
        const float steps = value * inverse + 8.5f;
        return steps >= 15.0f ? 15 : steps > 0.0f ? static_cast<int>(steps) : 0;
    };
    for (std::size_t i = 0; i < kv_block / 2; ++i)
        to[2 + i] = static_cast<std::uint8_t>(level(x[i]) | level(x[i + kv_block / 2]) << 4);
}

static void encode(KvKind kind, const float* x, std::size_t width, std::uint8_t* to) {
    switch (kind) {
        case KvKind::f32:
            __builtin_memcpy(to, x, width * sizeof(float));
            return;
        case KvKind::f16:
            for (std::size_t i = 0; i < width; ++i) {
                const std::uint16_t half = to_half(x[i]);
                __builtin_memcpy(to + 2 * i, &half, sizeof half);
            }
            return;
        case KvKind::q8_0:
            for (std::size_t i = 0; i < width; i += kv_block) pack_q8_0(x + i, to + i / kv_block * 34);
            return;
        case KvKind::q4_0:
            for (std::size_t i = 0; i < width; i += kv_block) pack_q4_0(x + i, to + i / kv_block * 18);
            return;
    }
}

static void decode(KvKind kind, const std::uint8_t* from, std::size_t width, float* to) {
    switch (kind) {
        case KvKind::f32:
            __builtin_memcpy(to, from, width * sizeof(float));
            return;
        case KvKind::f16: {
            std::size_t i = 0;
#if defined(PASCAL_AVX2)
            for (; i + lanes <= width; i += lanes) {
                __m128i halves;
                __builtin_memcpy(&halves, from + 2 * i, sizeof halves);
                store(to + i, _mm256_cvtph_ps(halves));
            }
#endif
            for (; i < width; ++i) to[i] = from_half(read_half(from + 2 * i));
            return;
        }
        case KvKind::q8_0:
            for (std::size_t i = 0; i < width; i += kv_block, from += 34) {
                const float scale = from_half(read_half(from));
                for (std::size_t j = 0; j < kv_block; ++j)
                    to[i + j] = static_cast<float>(static_cast<std::int8_t>(from[2 + j])) * scale;
            }
            return;
        case KvKind::q4_0:
            for (std::size_t i = 0; i < width; i += kv_block, from += 18) {
                const float scale = from_half(read_half(from));
                for (std::size_t j = 0; j < kv_block / 2; ++j) {
                    to[i + j] = static_cast<float>(static_cast<int>(from[2 + j] & 15) - 8) * scale;
                    to[i + j + kv_block / 2] = static_cast<float>(static_cast<int>(from[2 + j] >> 4) - 8) * scale;
                }
            }
            return;
    }
}

// Scaled products of a query with `count` keys; every product is eight running sums along the head. `width` is a
// multiple of 8.
INLINE void scores_of(const float* q, const float* keys, std::size_t width, std::size_t count, float scale, float* to) {
    constexpr std::size_t tile = 4;
    std::size_t key = 0;
    for (; key + tile <= count; key += tile) {
        V8 sums[tile]{};
        for (std::size_t i = 0; i < width; i += lanes) {
            const V8 query = load(q + i);
            for (std::size_t j = 0; j < tile; ++j) sums[j] = fma(query, load(keys + (key + j) * width + i), sums[j]);
        }
        for (std::size_t j = 0; j < tile; ++j) to[key + j] = sum(sums[j]) * scale;
    }
    for (; key < count; ++key) {
        V8 sums{};
        for (std::size_t i = 0; i < width; i += lanes) sums = fma(load(q + i), load(keys + key * width + i), sums);
        to[key] = sum(sums) * scale;
    }
}

// total = total * scale + sum of weights * values, key after key; eight vectors from column `at` on, or one.
template <typename V, std::size_t parts>
INLINE void add_values(const float* weights, const float* values, std::size_t width, std::size_t count, float scale,
                       std::size_t at, float* total) {
    V sums[parts];
    for (std::size_t i = 0; i < parts; ++i) sums[i] = load<V>(total + at + i * lanes_of<V>) * splat<V>(scale);
    for (std::size_t key = 0; key < count; ++key) {
        const V weight = splat<V>(weights[key]);
        for (std::size_t i = 0; i < parts; ++i)
            sums[i] = fma(weight, load<V>(values + key * width + at + i * lanes_of<V>), sums[i]);
    }
    for (std::size_t i = 0; i < parts; ++i) store(total + at + i * lanes_of<V>, sums[i]);
}

// Takes `count` <= 64 keys and values of a page into a query's running softmax.
static void attend_page(const float* q, const float* keys, const float* values, std::size_t width, std::size_t count,
                        float scale, Partial partial) {
    float weights[page_keys];
    for (std::size_t i = count / lanes * lanes; i < page_keys; ++i) weights[i] = -__builtin_inff();
    scores_of(q, keys, width, count, scale, weights);
    V8 most = splat(*partial.most);
    for (std::size_t i = 0; i < count; i += lanes) most = max(load(weights + i), most);
    const float peak = max(most);
    V8 total{};
    for (std::size_t i = 0; i < count; i += lanes) {
        const V8 weight = exp(load(weights + i) - splat(peak));
        store(weights + i, weight);
        total += weight;
    }
    const float shrink = exp(splat(*partial.most - peak))[0];
    *partial.total = *partial.total * shrink + sum(total);
    *partial.most = peak;
    std::size_t at = 0;
    for (; at + 8 * wide <= width; at += 8 * wide)
        add_values<Wide, 8>(weights, values, width, count, shrink, at, partial.out);
    for (; at + 8 * lanes <= width; at += 8 * lanes)
        add_values<V8, 8>(weights, values, width, count, shrink, at, partial.out);
    for (; at < width; at += lanes) add_values<V8, 1>(weights, values, width, count, shrink, at, partial.out);
}

// Joins the partial results of a query's splits, one `stride` floats behind the other, in their order.
static void join(const float* partials, std::size_t n_splits, std::size_t stride, std::size_t width,
                 std::size_t head_dim, float* out) {
    float most = partials[0];
    for (std::size_t i = 1; i < n_splits; ++i) most = partials[i * stride] > most ? partials[i * stride] : most;
    float total = 0;
    for (std::size_t i = 0; i < n_splits; ++i)
        total += partials[i * stride + 1] * exp(splat(partials[i * stride] - most))[0];
    for (std::size_t at = 0; at < width && at < head_dim; at += lanes) {
        V8 sums{};
        for (std::size_t i = 0; i < n_splits; ++i) {
            const float* partial = partials + i * stride;
            sums = fma(load(partial + 2 + at), exp(splat(partial[0] - most)), sums);
        }
        store(out + at, sums / splat(total), head_dim - at);
    }
}
