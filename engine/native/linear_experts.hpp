// Mixture of experts.
#pragma once
#include "linear_matrix.hpp"

// For each token x [tokens, hidden] the weighted sum of its `n_used` experts' outputs, in rank order, into `out`.
void mixture(const float* x, std::size_t n_tokens, const Matrix& router, const Matrix& gate_up, const Matrix& down,
             std::size_t n_used, float* out);
