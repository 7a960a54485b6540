// What the operations' source files share: views of arrays, and the choice of instructions.
#pragma once
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "bind.hpp"
#include "instructions.hpp"
#include "threads.hpp"

namespace nb = nanobind;

using In = nb::ndarray<const float, nb::device::cpu>;
using Out = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void bind_pointwise(nb::module_& module);
void bind_delta(nb::module_& module);
void bind_attention(nb::module_& module);

#if defined(__x86_64__)
#define PASCAL_DISPATCH(kernel, ...)                                    \
    (instructions == Instructions::avx512 ? avx512::kernel(__VA_ARGS__) \
     : instructions == Instructions::avx2 ? avx2::kernel(__VA_ARGS__)   \
                                          : portable::kernel(__VA_ARGS__))
#else
#define PASCAL_DISPATCH(kernel, ...) portable::kernel(__VA_ARGS__)
#endif

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// Tokens of an array [n, T, ...]: each a run of `width` floats, `stride` apart.
struct Tokens {
    const float* data;
    std::size_t count, stride, width;

    explicit Tokens(const In& array) : data(array.data()) {
        require(array.ndim() >= 3, "tokens are arrays [n, T, ...]");
        count = array.shape(0) * array.shape(1);
        width = 1;
        for (std::size_t axis = array.ndim(); axis-- > 2;) {
            require(array.shape(axis) == 1 || array.stride(axis) == static_cast<std::int64_t>(width),
                    "a token's values must be contiguous");
            width *= array.shape(axis);
        }
        const std::int64_t outer = array.stride(0), inner = array.stride(1);
        require(array.shape(0) == 1 || array.shape(1) == 1 || outer == inner * static_cast<std::int64_t>(array.shape(1)),
                "tokens must be evenly apart");
        stride = static_cast<std::size_t>(array.shape(1) == 1 ? outer : inner);
    }

    const float* at(std::size_t token) const { return data + token * stride; }
};

// Which tokens belong to which sequence: those of sequence i are offsets[i] ... offsets[i + 1] - 1.
struct Sequences {
    const std::int64_t *rows, *offsets;
    std::size_t count;

    Sequences(const Indices& rows, const Indices& offsets, std::size_t n_rows, std::size_t n_tokens)
        : rows(rows.data()), offsets(offsets.data()), count(rows.size()) {
        require(offsets.size() == count + 1 && offsets(0) == 0 && offsets(count) == static_cast<std::int64_t>(n_tokens),
                "offsets and tokens do not agree");
        for (std::size_t i = 0; i < count; ++i) {
            require(rows(i) >= 0 && static_cast<std::size_t>(rows(i)) < n_rows, "no such row in the pool");
            require(offsets(i) <= offsets(i + 1), "offsets must rise");
        }
    }

    std::size_t first(std::size_t i) const { return static_cast<std::size_t>(offsets[i]); }
    std::size_t length(std::size_t i) const { return static_cast<std::size_t>(offsets[i + 1] - offsets[i]); }
};
