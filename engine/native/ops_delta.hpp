// What the kernels of the recurrent operations work on.
#pragma once
#include <cstddef>

struct ConvRun {
    const float* x;  // the sequence's tokens, `stride` apart
    std::size_t n_tokens, stride;
    const float* kernel;  // [taps, channels]
    std::size_t n_taps, n_channels;
    float* history;  // [taps - 1, channels]
    float* out;      // [tokens, channels]
};

constexpr std::size_t delta_columns = 32;  // columns of a state that are worked on at once

struct DeltaRun {
    const float *q, *k, *v;  // one head of the sequence's tokens
    std::size_t n_tokens, q_stride, k_stride, v_stride;
    const float *decay, *strength;
    std::size_t gate_stride;
    std::size_t dim;
    float* state;  // [dim (key), dim (value)]
    float* out;
    std::size_t out_stride;
};
