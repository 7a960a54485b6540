// Norms, gates, rope, convolution, delta rule, attention.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "../instructions.hpp"
#include "../ops_attention.hpp"
#include "../ops_delta.hpp"
#include "check.hpp"

#define PASCAL_KERNELS "check/operations.inl"
#include "../targets.inl"

namespace {

#define PASCAL_OPERATIONS(each)                                                                              \
    each(rms_norm) each(l2_norm) each(silu_gate) each(sigmoid_gate) each(sigmoid_scale) each(add) each(rope) \
        each(causal_conv) each(delta_gates) each(exponentials) each(delta_rule) each(encode) each(decode)    \
            each(attend_page) each(join)

struct Operations {
#define PASCAL_FIELD(name) decltype(&portable::name) name;
    PASCAL_OPERATIONS(PASCAL_FIELD)
};

#define PASCAL_PORTABLE(name) portable::name,
#define PASCAL_AVX2_SET(name) avx2::name,
#define PASCAL_AVX512_SET(name) avx512::name,
const Operations sets[] = {
    {PASCAL_OPERATIONS(PASCAL_PORTABLE)}, {PASCAL_OPERATIONS(PASCAL_AVX2_SET)}, {PASCAL_OPERATIONS(PASCAL_AVX512_SET)}};

using Run = std::function<Floats(const Operations&)>;

// Runs on every instruction set and compares.
void compare_runs(Verdict& verdict, const Run& run, const std::string& what, double limit = 1e-5) {
    std::vector<Floats> of_sets;
    for (std::size_t set = 0; set < instruction_sets().size(); ++set) of_sets.push_back(run(sets[set]));
    compare(verdict, of_sets, limit, what);
}

// Numbers of every size, and edges.
Floats inputs(Random& random, std::size_t count) {
    constexpr float edges[] = {0.0f, -0.0f, 1e-38f, -1e-38f, 1e-45f, 87.0f, -87.0f, 89.5f, -104.5f, 1000.0f, -1000.0f};
    Floats x = random.floats(count, -8, 8);
    for (float& value : x)
        if (random.below(16) == 0) value = edges[random.below(std::size(edges))];
    return x;
}

bool check_pointwise() {
    Verdict norms("norms"), gates("gates, add, exp, softplus"), ropes("rope");
    Random random(7);
    for (std::size_t width : {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 64, 65, 100, 256, 1000}) {
        const std::string what = "width " + std::to_string(width);
        const Floats x = random.floats(width), weight = random.floats(width), wild = inputs(random, width),
                     wilder = inputs(random, width), small = random.floats(width, -1, 1);
        const auto into = [&](const auto& call) {
            return [&](const Operations& ops) {
                Floats out(width);
                call(ops, out.data());
                return out;
            };
        };
        compare_runs(norms,
                     into([&](auto& ops, float* out) { ops.rms_norm(x.data(), weight.data(), 1e-6f, width, out); }),
                     what);
        compare_runs(norms, into([&](auto& ops, float* out) { ops.l2_norm(x.data(), 1e-6f, width, out); }), what);
        compare_runs(gates, into([&](auto& ops, float* out) { ops.silu_gate(x.data(), wild.data(), width, out); }),
                     what);
        compare_runs(gates, into([&](auto& ops, float* out) { ops.sigmoid_gate(x.data(), wild.data(), width, out); }),
                     what);
        compare_runs(gates, into([&](auto& ops, float* out) { ops.sigmoid_scale(x.data(), wild[0], width, out); }),
                     what);
        compare_runs(gates, into([&](auto& ops, float* out) { ops.add(wild.data(), wilder.data(), width, out); }),
                     what);
        compare_runs(gates, into([&](auto& ops, float* out) { ops.exponentials(wild.data(), width, out); }), what);
        for (bool strength : {false, true})
            compare_runs(gates, into([&](auto& ops, float* out) {
                             Floats other(width);
                             ops.delta_gates(wild.data(), wilder.data(), x.data(), weight.data(), width,
                                             strength ? other.data() : out, strength ? out : other.data());
                         }),
                         what);
        if (width > 1)
            compare_runs(ropes, into([&](auto& ops, float* out) {
                             ops.rope(x.data(), small.data(), weight.data(), width / 2, width, out);
                         }),
                         what);
    }
    bool held = norms.print();
    held = gates.print() && held;
    return ropes.print() && held;
}

bool check_convolution() {
    Verdict verdict("convolution");
    Random random(8);
    for (std::size_t n_channels : {1, 8, 13, 16, 24, 40, 515})
        for (std::size_t n_taps : {1, 2, 4})
            for (std::size_t n_tokens : {1, 2, 5, 64}) {
                const Floats x = random.floats(n_tokens * (n_channels + 3)),
                             kernel = random.floats(n_taps * n_channels),
                             before = random.floats((n_taps - 1) * n_channels);
                compare_runs(
                    verdict,
                    [&](const Operations& ops) {
                        Floats history = before, out(n_tokens * n_channels);
                        ops.causal_conv({x.data(), n_tokens, n_channels + 3, kernel.data(), n_taps, n_channels,
                                         history.data(), out.data()},
                                        0, n_channels);
                        out.insert(out.end(), history.begin(), history.end());
                        return out;
                    },
                    std::to_string(n_channels) + " channels, " + std::to_string(n_taps) + " taps, " +
                        std::to_string(n_tokens) + " tokens");
            }
    return verdict.print();
}

struct DeltaCase {
    std::size_t dim, n_tokens;
    Floats q, k, v, decay, strength, before;

    DeltaCase(std::size_t dim, std::size_t n_tokens, Random& random)
        : dim(dim),
          n_tokens(n_tokens),
          q(random.floats(n_tokens * dim, -1, 1)),
          k(random.floats(n_tokens * dim, -0.2f, 0.2f)),
          v(random.floats(n_tokens * dim)),
          decay(random.floats(n_tokens, 0.5f, 1)),
          strength(random.floats(n_tokens, 0, 1)),
          before(random.floats(dim * dim)) {}

    // What the tokens give, and the state behind them.
    Floats run(const Operations& ops) const {
        Floats state = before, out(n_tokens * dim), scratch(dim * delta_columns);
        for (std::size_t column = 0; column < dim; column += delta_columns)
            ops.delta_rule({q.data(), k.data(), v.data(), n_tokens, dim, dim, dim, decay.data(), strength.data(), 1,
                            dim, state.data(), out.data(), dim},
                           column, scratch.data());
        out.insert(out.end(), state.begin(), state.end());
        return out;
    }
};

bool check_delta() {
    Verdict verdict("delta rule");
    Random random(9);
    for (std::size_t dim : {1, 8, 16, 24, 31, 32, 33, 64, 72, 128})
        for (std::size_t n_tokens : {1, 3, 4, 37}) {
            const DeltaCase one(dim, n_tokens, random);
            compare_runs(
                verdict, [&](const Operations& ops) { return one.run(ops); },
                "dim " + std::to_string(dim) + ", " + std::to_string(n_tokens) + " tokens");
        }
    return verdict.print();
}

bool check_pools() {
    Verdict verdict("keys and values");
    Random random(10);
    constexpr std::size_t sizes[] = {4, 2, 0, 0};
    for (int kind = 0; kind < 4; ++kind)
        for (std::size_t width : {1, 7, 8, 20, 32, 64, 96, 256}) {
            if (kind > 1 && width % kv_block != 0) continue;
            const std::size_t blocks = width / kv_block, n_bytes = kind == 2   ? 34 * blocks
                                                                   : kind == 3 ? 18 * blocks
                                                                               : sizes[kind] * width;
            Floats x = random.floats(width);
            if (width == 96) std::fill(x.begin(), x.begin() + 32, 0.0f), x[40] = 7e4f, x[41] = 1e-7f;
            compare_runs(
                verdict,
                [&](const Operations& ops) {
                    std::vector<std::uint8_t> packed(n_bytes);
                    Floats out(width);
                    ops.encode(KvKind{kind}, x.data(), width, packed.data());
                    ops.decode(KvKind{kind}, packed.data(), width, out.data());
                    out.insert(out.end(), packed.begin(), packed.end());
                    return out;
                },
                "kind " + std::to_string(kind) + ", width " + std::to_string(width));
        }
    return verdict.print();
}

struct AttentionCase {
    std::size_t width;
    Floats q, keys, values;

    AttentionCase(std::size_t width, Random& random)
        : width(width),
          q(random.floats(width)),
          keys(random.floats(page_keys * width)),
          values(random.floats(page_keys * width)) {}

    // Two splits of two pages each, joined.
    Floats run(const Operations& ops, std::size_t count) const {
        const std::size_t stride = width + 2;
        Floats partials(2 * stride), out(width);
        for (std::size_t split = 0; split < 2; ++split) {
            float* to = partials.data() + split * stride;
            *to = -__builtin_inff();
            for (std::size_t seen : {page_keys, count})
                ops.attend_page(q.data(), keys.data(), values.data(), width, split == 0 ? seen : seen / 2 + 1, 0.1f,
                                {to, to + 1, to + 2});
        }
        ops.join(partials.data(), 2, stride, width, width - width % 16 / 4, out.data());
        out.insert(out.end(), partials.begin(), partials.end());
        return out;
    }
};

bool check_attention() {
    Verdict verdict("attention");
    Random random(11);
    for (std::size_t width : {8, 16, 24, 64, 72, 80, 128, 192, 256}) {
        const AttentionCase one(width, random);
        for (std::size_t count = 1; count <= page_keys; ++count)
            compare_runs(
                verdict, [&](const Operations& ops) { return one.run(ops, count); },
                "width " + std::to_string(width) + ", " + std::to_string(count) + " keys");
    }
    return verdict.print();
}

// The least time of a call, in microseconds.
double least(const std::function<void()>& call) {
    using Clock = std::chrono::steady_clock;
    double best = 1e30;
    for (int round = 0; round < 200; ++round) {
        const auto begin = Clock::now();
        for (int i = 0; i < 5; ++i) call();
        best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 5);
    }
    return best;
}

}  // namespace

bool check_operations() {
    bool held = check_pointwise();
    for (auto* check : {check_convolution, check_delta, check_pools, check_attention}) held = check() && held;
    return held;
}

void time_operations() {
    Random random(12);
    const DeltaCase step(128, 1, random), block(128, 64, random);
    const AttentionCase page(256, random);
    const Floats x = random.floats(4096), y = random.floats(4096);
    Floats out(4096);
    std::printf(
        "\nmicroseconds, one thread:    delta 1 token  delta 64 tokens  attention 4 pages  rms norm 4096  silu 4096\n");
    for (std::size_t set = 0; set < instruction_sets().size(); ++set) {
        const Operations& ops = sets[set];
        std::printf("%-26s %15.2f %16.1f %18.2f %14.3f %10.3f\n", instruction_sets()[set].c_str(),
                    least([&] { step.run(ops); }), least([&] { block.run(ops); }),
                    least([&] { page.run(ops, page_keys); }),
                    least([&] { ops.rms_norm(x.data(), y.data(), 1e-6f, 4096, out.data()); }),
                    least([&] { ops.silu_gate(x.data(), y.data(), 4096, out.data()); }));
    }
}
