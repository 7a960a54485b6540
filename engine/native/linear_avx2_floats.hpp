// Float weights with AVX2.
#pragma once
#include "linear_avx2.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace {

template <Type type> INLINE __m256 load_floats(const std::uint8_t* row, std::size_t at) {
    if constexpr (type == Type::F32) return _mm256_loadu_ps(reinterpret_cast<const float*>(row + 4 * at));
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * at));
    if constexpr (type == Type::F16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

// The last few values of a row, zeros behind.
template <Type type> INLINE __m256 load_tail(const std::uint8_t* row, std::size_t at, std::size_t count) {
    constexpr std::size_t width = type == Type::F32 ? 4 : 2;
    std::uint8_t padded[32] = {};
    for (std::size_t i = 0; i < count * width; ++i) padded[i] = row[at * width + i];
    return load_floats<type>(padded, 0);
}

template <Type type, std::size_t n_rows, std::size_t n_columns>
INLINE void multiply_tile(const RowRange& rows, std::size_t row, const Activations& x, const Columns& columns,
                          std::size_t column) {
    __m256 sums[n_rows][n_columns];
    const std::uint8_t* weights[n_rows];
    const std::uint8_t* inputs[n_columns];
    for (std::size_t r = 0; r < n_rows; ++r) weights[r] = rows.data + (row + r) * rows.row_bytes;
    for (std::size_t c = 0; c < n_columns; ++c)
        inputs[c] = reinterpret_cast<const std::uint8_t*>(x.x + columns.from[column + c] * x.n_inputs);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < n_rows; ++r)
#pragma GCC unroll 3
        for (std::size_t c = 0; c < n_columns; ++c) sums[r][c] = _mm256_setzero_ps();
    const std::size_t whole = x.n_inputs / 8 * 8, left = x.n_inputs - whole;
    for (std::size_t i = 0; i < whole; i += 8) {
        __m256 in[n_columns];
#pragma GCC unroll 3
        for (std::size_t c = 0; c < n_columns; ++c) in[c] = load_floats<Type::F32>(inputs[c], i);
#pragma GCC unroll 4
        for (std::size_t r = 0; r < n_rows; ++r) {
            const __m256 weight = load_floats<type>(weights[r], i);
#pragma GCC unroll 3
            for (std::size_t c = 0; c < n_columns; ++c) sums[r][c] = _mm256_fmadd_ps(weight, in[c], sums[r][c]);
        }
    }
    if (left != 0)
        for (std::size_t r = 0; r < n_rows; ++r)
            for (std::size_t c = 0; c < n_columns; ++c)
                sums[r][c] = _mm256_fmadd_ps(load_tail<type>(weights[r], whole, left),
                                             load_tail<Type::F32>(inputs[c], whole, left), sums[r][c]);
    for (std::size_t r = 0; r < n_rows; ++r)
        for (std::size_t c = 0; c < n_columns; ++c)
            columns.out[columns.to[column + c] * columns.stride + row + r] = sum_lanes(sums[r][c]);
}

template <Type type, std::size_t n_rows>
INLINE void multiply_rows(const RowRange& rows, std::size_t row, const Activations& x, const Columns& columns) {
    std::size_t column = 0;
    for (; column + 3 <= columns.count; column += 3) multiply_tile<type, n_rows, 3>(rows, row, x, columns, column);
    if (columns.count - column == 2) multiply_tile<type, n_rows, 2>(rows, row, x, columns, column);
    if (columns.count - column == 1) multiply_tile<type, n_rows, 1>(rows, row, x, columns, column);
}

template <Type type> void multiply_floats(const RowRange& rows, const Activations& x, const Columns& columns) {
    std::size_t row = 0;
    for (; row + 4 <= rows.count; row += 4) multiply_rows<type, 4>(rows, row, x, columns);
    for (; row < rows.count; ++row) multiply_rows<type, 1>(rows, row, x, columns);
}

}  // namespace

#pragma GCC pop_options
