// Causal convolution, gates and the delta rule, of one sequence each.

// Channels first ... stop - 1 through all tokens; then the last inputs become the history. All channels of a token come
// before the next token: the other way round every step would touch another page of memory.
static void causal_conv(const ConvRun& run, std::size_t first, std::size_t stop) {
    const std::size_t before = run.n_taps - 1;
    const auto input = [&](std::size_t at) __attribute__((always_inline)) {
        return at < before ? run.history + at * run.n_channels : run.x + (at - before) * run.stride;
    };
    for (std::size_t token = 0; token < run.n_tokens; ++token)
        for (std::size_t channel = first; channel < stop; channel += wide) {
            const std::size_t count = stop - channel;
            Wide total{};
            for (std::size_t tap = 0; tap < run.n_taps; ++tap)
                total = fma(load<Wide>(input(token + tap) + channel, count),
                            load<Wide>(run.kernel + tap * run.n_channels + channel, count), total);
            store(run.out + token * run.n_channels + channel, total * sigmoid(total), count);
        }
    for (std::size_t at = 0; at < before; ++at)
        for (std::size_t channel = first; channel < stop; channel += wide)
            store(run.history + at * run.n_channels + channel,
                  load<Wide>(input(at + run.n_tokens) + channel, stop - channel), stop - channel);
}

// decay = a * softplus(alpha + dt), strength = sigmoid(beta), for the heads of one token.
static void delta_gates(const float* alpha, const float* beta, const float* a, const float* dt, std::size_t width,
                        float* decay, float* strength) {
    for (std::size_t i = 0; i < width; i += wide) {
        const std::size_t count = width - i;
        const Wide open = load<Wide>(alpha + i, count) + load<Wide>(dt + i, count);
        store(decay + i, load<Wide>(a + i, count) * softplus(open), count);
        store(strength + i, sigmoid(load<Wide>(beta + i, count)), count);
    }
}

static void exponentials(const float* x, std::size_t width, float* out) {
    for (std::size_t i = 0; i < width; i += wide) store(out + i, exp(load<Wide>(x + i, width - i)), width - i);
}

constexpr std::size_t delta_parts = delta_columns / wide;

// `count` <= delta_columns columns of the state from `column` on, through all tokens. The columns lie in `state`,
// rows `stride` apart. A value's sum over the keys runs in two turns, even keys and odd ones.
INLINE void delta_tokens(const DeltaRun& run, std::size_t column, std::size_t count, float* state, std::size_t stride) {
    const Wide scale = splat<Wide>(1.0f / square_root(static_cast<float>(run.dim)));
    for (std::size_t token = 0; token < run.n_tokens; ++token) {
        const float *q = run.q + token * run.q_stride, *k = run.k + token * run.k_stride;
        const Wide decay = splat<Wide>(run.decay[token * run.gate_stride]);
        const Wide strength = splat<Wide>(run.strength[token * run.gate_stride]);
        Wide sums[2][delta_parts]{}, delta[delta_parts];
        for (std::size_t key = 0; key < run.dim; key += 2)
            for (std::size_t turn = 0; turn < 2 && key + turn < run.dim; ++turn) {
                const Wide weight = splat<Wide>(k[key + turn]);
                const float* from = state + (key + turn) * stride;
                for (std::size_t i = 0; i < delta_parts; ++i)
                    sums[turn][i] = fma(weight, decay * load<Wide>(from + i * wide), sums[turn][i]);
            }
        for (std::size_t i = 0; i < delta_parts; ++i) {
            const std::size_t at = i * wide, left = count > at ? count - at : 0;
            const Wide value = load<Wide>(run.v + token * run.v_stride + column + at, left);
            delta[i] = strength * (value - (sums[0][i] + sums[1][i]));
            sums[0][i] = sums[1][i] = Wide{};
        }
        for (std::size_t key = 0; key < run.dim; key += 2)
            for (std::size_t turn = 0; turn < 2 && key + turn < run.dim; ++turn) {
                const Wide write = splat<Wide>(k[key + turn]), read = splat<Wide>(q[key + turn]);
                float* at = state + (key + turn) * stride;
                for (std::size_t i = 0; i < delta_parts; ++i) {
                    const Wide value = fma(write, delta[i], decay * load<Wide>(at + i * wide));
                    store(at + i * wide, value);
                    sums[turn][i] = fma(read, value, sums[turn][i]);
                }
            }
        for (std::size_t i = 0; i < delta_parts && i * wide < count; ++i)
            store(run.out + token * run.out_stride + column + i * wide, (sums[0][i] + sums[1][i]) * scale,
                  count - i * wide);
    }
}

// Over several tokens the columns are worked on in `scratch` [dim, delta_columns], which stays in the first-level cache.
static void delta_rule(const DeltaRun& run, std::size_t column, float* scratch) {
    const std::size_t left = run.dim - column, count = left < delta_columns ? left : delta_columns;
    if (run.n_tokens < 4 && count == delta_columns) return delta_tokens(run, column, count, run.state + column, run.dim);
    for (std::size_t key = 0; key < run.dim; ++key)
        for (std::size_t i = 0; i < delta_columns; ++i)
            scratch[key * delta_columns + i] = i < count ? run.state[key * run.dim + column + i] : 0.0f;
    delta_tokens(run, column, count, scratch, delta_columns);
    for (std::size_t key = 0; key < run.dim; ++key)
        for (std::size_t i = 0; i < count; ++i) run.state[key * run.dim + column + i] = scratch[key * delta_columns + i];
}
