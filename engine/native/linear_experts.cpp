#include "linear_experts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "threads.hpp"

namespace {

// The choices of all tokens: choice `token * n_used + rank` is for an expert, with a weight.
struct Routing {
    std::vector<std::uint32_t> expert;
    std::vector<float> weight;
};

// The most probable experts first, ties by the lower number; softmax over the chosen ones, which is what
// renormalising the softmax over all gives.
void route(const float* logits, std::size_t n_experts, std::size_t n_used, std::uint32_t* expert, float* weight) {
    std::vector<std::uint32_t> order(n_experts);
    std::iota(order.begin(), order.end(), 0u);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_used), order.end(),
                      [logits](std::uint32_t a, std::uint32_t b) {
                          return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
                      });
    float total = 0;
    for (std::size_t rank = 0; rank < n_used; ++rank) {
        expert[rank] = order[rank];
        weight[rank] = std::exp(logits[order[rank]] - logits[order[0]]);
        total += weight[rank];
    }
    for (std::size_t rank = 0; rank < n_used; ++rank) weight[rank] /= total;
}

// The choices sorted by expert: those of expert e are choices[begin[e]] to choices[begin[e + 1] - 1].
struct Groups {
    std::vector<std::uint32_t> begin, choices, tokens, used;

    Groups(const Routing& routing, std::size_t n_experts, std::size_t n_used)
        : begin(n_experts + 1), choices(routing.expert.size()), tokens(routing.expert.size()) {
        for (std::uint32_t expert : routing.expert) ++begin[expert + 1];
        for (std::size_t expert = 0; expert < n_experts; ++expert) {
            if (begin[expert + 1] != 0) used.push_back(static_cast<std::uint32_t>(expert));
            begin[expert + 1] += begin[expert];
        }
        std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
        for (std::uint32_t choice = 0; choice < choices.size(); ++choice) {
            const std::uint32_t at = next[routing.expert[choice]]++;
            choices[at] = choice;
            tokens[at] = choice / static_cast<std::uint32_t>(n_used);
        }
    }
};

// Every used expert's matrix times the columns of its choices; each row is read once. Columns come from `from`.
void multiply_groups(const Matrix& matrix, const Groups& groups, const std::vector<std::uint32_t>& from,
                     const Activations& x, float* out) {
    const std::size_t piece = rows_a_piece(1), pieces = (matrix.n_outputs + piece - 1) / piece;
    parallel_for(groups.used.size() * pieces, [&](std::size_t i) {
        const std::uint32_t expert = groups.used[i / pieces], begin = groups.begin[expert];
        const std::size_t first = i % pieces * piece;
        multiply_rows(matrix, expert, first, std::min(piece, matrix.n_outputs - first), x,
                      {from.data() + begin, groups.choices.data() + begin, groups.begin[expert + 1] - begin}, out);
    });
}

// silu(gate) * up for one choice.
void gate(const float* gate_up, std::size_t width, float* out) {
    for (std::size_t i = 0; i < width; ++i)
        out[i] = gate_up[i] / (1.0f + std::exp(-gate_up[i])) * gate_up[width + i];
}

}  // namespace

void mixture(const float* x, std::size_t n_tokens, const Matrix& router, const Matrix& gate_up, const Matrix& down,
             std::size_t n_used, float* out) {
    const std::size_t n_experts = router.n_outputs, n_choices = n_tokens * n_used, width = down.n_inputs;
    const std::size_t hidden = down.n_outputs;
    const Buffer<float> logits(n_tokens * n_experts);
    multiply(router, x, n_tokens, logits.data());
    Routing routing{std::vector<std::uint32_t>(n_choices), std::vector<float>(n_choices)};
    for (std::size_t token = 0; token < n_tokens; ++token)
        route(logits.data() + token * n_experts, n_experts, n_used, routing.expert.data() + token * n_used,
              routing.weight.data() + token * n_used);
    const Groups groups(routing, n_experts, n_used);

    // How many choices an expert has on average.
    const std::size_t together = n_choices / std::max<std::size_t>(groups.used.size(), 1);

    const Buffer<float> mixed(n_choices * 2 * width), inner(n_choices * width), outer(n_choices * hidden);
    multiply_groups(gate_up, groups, groups.tokens, pack(gate_up, x, n_tokens, together), mixed.data());
    parallel_for(n_choices, [&](std::size_t choice) {
        gate(mixed.data() + choice * 2 * width, width, inner.data() + choice * width);
    });
    multiply_groups(down, groups, groups.choices, pack(down, inner.data(), n_choices, together), outer.data());
    parallel_for(n_tokens, [&](std::size_t token) {
        float* sum = out + token * hidden;
        for (std::size_t rank = 0; rank < n_used; ++rank) {
            const std::size_t choice = token * n_used + rank;
            const float* part = outer.data() + choice * hidden;
            const float weight = routing.weight[choice];
            for (std::size_t i = 0; i < hidden; ++i) sum[i] = rank == 0 ? part[i] * weight : sum[i] + part[i] * weight;
        }
    });
}
