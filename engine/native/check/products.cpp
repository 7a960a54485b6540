// Products with weights of every type, and mixtures of experts.
#include <cmath>
#include <limits>

#include "../instructions.hpp"
#include "../linear_experts.hpp"
#include "../threads.hpp"
#include "weights.hpp"

namespace {

Floats product(const Matrix& matrix, const Floats& x, std::size_t first, std::size_t n_columns) {
    Floats out(n_columns * matrix.n_outputs);
    multiply(matrix, x.data() + first * matrix.n_inputs, n_columns, out.data());
    return out;
}

// Activations, a few of them large; or all at the end of their range.
Floats activations(std::size_t n_columns, std::size_t n_inputs, Filling filling, std::uint64_t seed) {
    Random random(seed);
    Floats x = random.floats(n_columns * n_inputs);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (random.below(100) == 0) x[i] *= 20;
        if (filling == Filling::ones) x[i] = i / n_inputs % 2 == 0 ? 3.0f : -3.0f;
        if (filling == Filling::high_bits) x[i] = random.below(2) == 0 ? 3.0f : -3.0f;
    }
    if (filling == Filling::random && n_columns > 3) {  // nothing, and next to nothing
        for (std::size_t i = 0; i < n_inputs; ++i) x[n_inputs + i] = 1e-38f;
        for (std::size_t i = 0; i < n_inputs; ++i) x[2 * n_inputs + i] = 0;
    }
    return x;
}

struct Shape {
    std::size_t n_outputs, n_blocks, n_columns;
};

void check_shape(Verdict& verdict, const Named& type, const Shape& shape, Filling filling) {
    const std::size_t n_inputs = type.block == 1 ? 32 * shape.n_blocks - 3 : type.block * shape.n_blocks;
    const Weights weights(type, 1, shape.n_outputs, n_inputs, filling, 10 * n_inputs + shape.n_outputs);
    const Floats x = activations(shape.n_columns, n_inputs, filling, n_inputs);
    const std::string what = std::to_string(shape.n_outputs) + " x " + std::to_string(n_inputs) + ", filling " +
                             std::to_string(static_cast<int>(filling));
    std::vector<Floats> of_sets;
    for (const auto& name : instruction_sets()) {
        set_instructions(name);
        set_threads(1);
        Floats alone;
        for (std::size_t i = 0; i < shape.n_columns; ++i) {
            const Floats column = product(weights.matrix, x, i, 1);
            alone.insert(alone.end(), column.begin(), column.end());
        }
        for (std::size_t n_threads : {1, 2, 3}) {
            set_threads(n_threads);
            for (std::size_t n = 1; n <= shape.n_columns;
                 n = n < 16 || n >= shape.n_columns - 3 ? n + 1 : shape.n_columns - 3)
                verdict.same(product(weights.matrix, x, 0, n),
                             Floats(alone.begin(), alone.begin() + n * shape.n_outputs),
                             what + ", " + name + ", " + std::to_string(n) + " columns, " + std::to_string(n_threads) +
                                 " threads");
        }
        of_sets.push_back(std::move(alone));
    }
    compare(verdict, of_sets, filling == Filling::random ? 1e-5 : 1e-4, what);
}

// What is no number shows in its own column and in no other, whatever the set.
void check_no_number(Verdict& verdict, const Named& type) {
    const Weights weights(type, 1, 5, 512, Filling::random, 5);
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        Floats x = Random(3).floats(3 * 512);
        x[512 + 100] = bad;
        for (const auto& name : instruction_sets()) {
            set_instructions(name);
            const Floats got = product(weights.matrix, x, 0, 3);
            bool bad_in[3] = {};
            for (std::size_t i = 0; i < got.size(); ++i) bad_in[i / 5] |= !std::isfinite(got[i]);
            verdict.expect(!bad_in[0] && bad_in[1] && !bad_in[2], "no number, " + name);
        }
    }
}

bool check_experts() {
    bool held = true;
    const Named& router_type = types().front();
    for (const Named& type : types()) {
        Verdict verdict(std::string("experts ") + type.name);
        const Weights router(router_type, 1, 7, 512, Filling::random, 1),
            gate_up(type, 7, 512, 512, Filling::random, 2), down(type, 7, 512, 256, Filling::random, 3);
        Floats x = Random(4).floats(20 * 512, -0.05f, 0.05f);
        std::vector<Floats> of_sets;
        for (const auto& name : instruction_sets()) {
            set_instructions(name);
            set_threads(2);
            for (std::size_t n : {1, 3, 20}) {
                Floats out(n * 512);
                mixture(x.data(), n, router.matrix, gate_up.matrix, down.matrix, 3, out.data());
                if (n == 20) of_sets.push_back(out);
            }
        }
        compare(verdict, of_sets, 1e-3, "7 experts");
        held = verdict.print() && held;
    }
    return held;
}

}  // namespace

bool check_products() {
    fill_tables();
    bool held = true;
    for (const Named& type : types()) {
        Verdict verdict(type.name);
        const std::size_t wide = type.block == 256 ? 3 : 17;
        check_shape(verdict, type, {75, wide, 67}, Filling::random);
        for (std::size_t n_outputs : {1, 2, 3, 5, 36})
            check_shape(verdict, type, {n_outputs, wide + n_outputs, 18}, Filling::random);
        for (Filling filling : {Filling::ones, Filling::high_bits, Filling::zeros})
            check_shape(verdict, type, {9, wide, 9}, filling);
        check_no_number(verdict, type);
        held = verdict.print() && held;
    }
    return check_experts() && held;
}
