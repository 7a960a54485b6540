// Norms, gates, rope and sums of one token, or of one head.

// Sum of squares: four times eight running sums.
INLINE float squares(const float* x, std::size_t width) {
    V8 sums[4]{};
    std::size_t i = 0;
    for (; i + 4 * lanes <= width; i += 4 * lanes)
        for (std::size_t part = 0; part < 4; ++part) {
            const V8 values = load(x + i + part * lanes);
            sums[part] = fma(values, values, sums[part]);
        }
    for (; i < width; i += lanes) {
        const V8 values = load(x + i, width - i);
        sums[0] = fma(values, values, sums[0]);
    }
    return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

static void rms_norm(const float* x, const float* weight, float eps, std::size_t width, float* out) {
    const float mean = squares(x, width) / static_cast<float>(width);
    const Wide scale = splat<Wide>(1.0f / square_root(mean + eps));
    for (std::size_t i = 0; i < width; i += wide)
        store(out + i, load<Wide>(x + i, width - i) * scale * load<Wide>(weight + i, width - i), width - i);
}

static void l2_norm(const float* x, float eps, std::size_t width, float* out) {
    const Wide scale = splat<Wide>(1.0f / square_root(squares(x, width) + eps));
    for (std::size_t i = 0; i < width; i += wide) store(out + i, load<Wide>(x + i, width - i) * scale, width - i);
}

static void silu_gate(const float* x, const float* gate, std::size_t width, float* out) {
    for (std::size_t i = 0; i < width; i += wide) {
        const Wide g = load<Wide>(gate + i, width - i);
        store(out + i, load<Wide>(x + i, width - i) * (g * sigmoid(g)), width - i);
    }
}

static void sigmoid_gate(const float* x, const float* gate, std::size_t width, float* out) {
    for (std::size_t i = 0; i < width; i += wide)
        store(out + i, load<Wide>(x + i, width - i) * sigmoid(load<Wide>(gate + i, width - i)), width - i);
}

// One gate for the whole token.
static void sigmoid_scale(const float* x, float gate, std::size_t width, float* out) {
    const Wide scale = sigmoid(splat<Wide>(gate));
    for (std::size_t i = 0; i < width; i += wide) store(out + i, load<Wide>(x + i, width - i) * scale, width - i);
}

static void add(const float* x, const float* y, std::size_t width, float* out) {
    for (std::size_t i = 0; i < width; i += wide)
        store(out + i, load<Wide>(x + i, width - i) + load<Wide>(y + i, width - i), width - i);
}

// Pairs lie `half` apart.
static void rope(const float* x, const float* cos, const float* sin, std::size_t half, std::size_t head_dim,
                 float* out) {
    for (std::size_t i = 0; i < half; i += wide) {
        const std::size_t count = half - i;
        const Wide first = load<Wide>(x + i, count), second = load<Wide>(x + half + i, count);
        const Wide c = load<Wide>(cos + i, count), s = load<Wide>(sin + i, count);
        store(out + i, first * c - second * s, count);
        store(out + half + i, second * c + first * s, count);
    }
    for (std::size_t i = 2 * half; i < head_dim; ++i) out[i] = x[i];
}
