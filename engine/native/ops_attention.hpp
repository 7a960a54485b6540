// What the kernels of attention work on.
#pragma once
#include <cstddef>

constexpr std::size_t page_keys = 64, kv_block = 32;

enum class KvKind { f32, f16, q8_0, q4_0 };

// What a query has seen of a split: highest score, sum of weights, weighted sum of values.
struct Partial {
    float *most, *total, *out;
};
