// Speed of products for each type and vector instruction set.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "../instructions.hpp"
#include "../threads.hpp"
#include "weights.hpp"

namespace {

// The least time of a product, in seconds, of at least 3 runs and 30 ms.
double least(const Matrix& matrix, const Floats& x, std::size_t n_columns, Floats& out) {
    using Clock = std::chrono::steady_clock;
    double best = 1e30, all = 0;
    for (int round = 0; round < 3 || all < 0.03; ++round) {
        const auto begin = Clock::now();
        multiply(matrix, x.data(), n_columns, out.data());
        const double took = std::chrono::duration<double>(Clock::now() - begin).count();
        best = std::min(best, took), all += took;
    }
    return best;
}

void time_shape(std::size_t n_threads, std::size_t n_outputs, std::size_t n_inputs) {
    constexpr std::size_t columns[] = {1, 4, 16, 64};
    std::vector<std::string> sets = instruction_sets();
    if (sets.size() > 1) sets.erase(sets.begin());  // portable says nothing beside vectors
    set_threads(n_threads);
    std::printf("\n%zu x %zu, %zu threads: GB/s of weights for 1 column; G products/s for 1, 4, 16, 64 columns\n",
                n_outputs, n_inputs, n_threads);
    for (const Named& type : types()) {
        const Weights weights(type, 1, n_outputs, n_inputs, Filling::random, 1);
        const Floats x = Random(2).floats(64 * n_inputs);
        Floats out(64 * n_outputs);
        for (const std::string& set : sets) {
            set_instructions(set);
            std::printf("%-10s %-8s", type.name, set.c_str());
            for (std::size_t n : columns) {
                const double took = least(weights.matrix, x, n, out) * 1e9;
                if (n == 1) std::printf(" %8.1f GB/s ", static_cast<double>(weights.bytes.size()) / took);
                std::printf(" %9.1f", static_cast<double>(n_outputs * n_inputs * n) / took);
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    }
}

}  // namespace

void time_products(std::size_t n_threads) {
    time_shape(1, 128, 2048);
    time_shape(n_threads, 8192, 4096);
}
