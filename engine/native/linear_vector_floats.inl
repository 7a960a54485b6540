// Float weights.

// Eight weights of each row from number `at` on.
template <Type type> INLINE Floats load_weights(const Rows& rows, std::size_t at) {
    if constexpr (type == Type::F32) return (Floats)load_rows(rows, 4 * at);
    const auto eight = [&](int row) __attribute__((always_inline)) { return load_half(rows.at[row] + 2 * at); };
    if constexpr (type == Type::F16) return halves_of_each_row(eight);
    return (Floats)each_row([&](int row) __attribute__((always_inline)) {
        return _mm256_slli_epi32(_mm256_cvtepu16_epi32(eight(row)), 16);
    });
}

// The last few of each row, zeros behind.
template <Type type> INLINE Floats load_last_weights(const Rows& rows, std::size_t at, std::size_t count) {
    constexpr std::size_t width = type == Type::F32 ? 4 : 2;
    std::uint8_t padded[rows_at_once][32] = {};
    Rows last{};
    for (std::size_t row = 0; row < rows_at_once; ++row) {
        for (std::size_t i = 0; i < count * width; ++i) padded[row][i] = rows.at[row][at * width + i];
        last.at[row] = padded[row];
    }
    return load_weights<type>(last, 0);
}

INLINE Floats load_last_inputs(const float* inputs, std::size_t count) {
    float padded[8] = {};
    for (std::size_t i = 0; i < count; ++i) padded[i] = inputs[i];
    return for_each_row(_mm256_loadu_ps(padded));
}

template <Type type, std::size_t n_vectors, std::size_t n_columns>
INLINE void multiply_tile(const RowRange& rows, std::size_t row, const Activations& x, const Columns& columns,
                          std::size_t column) {
    Floats sums[n_vectors][n_columns];
    Rows weights[n_vectors];
    const float* inputs[n_columns];
    for (std::size_t r = 0; r < n_vectors; ++r) weights[r] = rows_from(rows, row + r * rows_at_once);
    for (std::size_t c = 0; c < n_columns; ++c) inputs[c] = x.x + columns.from[column + c] * x.n_inputs;
#pragma GCC unroll 4
    for (std::size_t r = 0; r < n_vectors; ++r)
#pragma GCC unroll 3
        for (std::size_t c = 0; c < n_columns; ++c) sums[r][c] = Floats{};
    const std::size_t whole = x.n_inputs / 8 * 8, left = x.n_inputs - whole;
    for (std::size_t i = 0; i < whole; i += 8) {
        Floats in[n_columns];
#pragma GCC unroll 3
        for (std::size_t c = 0; c < n_columns; ++c) in[c] = for_each_row(_mm256_loadu_ps(inputs[c] + i));
#pragma GCC unroll 4
        for (std::size_t r = 0; r < n_vectors; ++r) {
            const Floats weight = load_weights<type>(weights[r], i);
#pragma GCC unroll 3
            for (std::size_t c = 0; c < n_columns; ++c) sums[r][c] = fma(weight, in[c], sums[r][c]);
        }
    }
    if (left != 0)
        for (std::size_t r = 0; r < n_vectors; ++r)
            for (std::size_t c = 0; c < n_columns; ++c)
                sums[r][c] = fma(load_last_weights<type>(weights[r], whole, left),
                                 load_last_inputs(inputs[c] + whole, left), sums[r][c]);
    for (std::size_t r = 0; r < n_vectors; ++r)
        for (std::size_t c = 0; c < n_columns; ++c)
            store_sums(sums[r][c], weights[r].count,
                       columns.out + columns.to[column + c] * columns.stride + row + r * rows_at_once);
}

template <Type type, std::size_t n_vectors>
INLINE void multiply_rows(const RowRange& rows, std::size_t row, const Activations& x, const Columns& columns) {
    std::size_t column = 0;
    for (; column + 3 <= columns.count; column += 3) multiply_tile<type, n_vectors, 3>(rows, row, x, columns, column);
    if (columns.count - column == 2) multiply_tile<type, n_vectors, 2>(rows, row, x, columns, column);
    if (columns.count - column == 1) multiply_tile<type, n_vectors, 1>(rows, row, x, columns, column);
}

template <Type type> void multiply_floats(const RowRange& rows, const Activations& x, const Columns& columns) {
    constexpr std::size_t tile = 4 * rows_at_once;
    std::size_t row = 0;
    for (; row + tile <= rows.count; row += tile) multiply_rows<type, 4>(rows, row, x, columns);
    for (; row < rows.count; row += rows_at_once) multiply_rows<type, 1>(rows, row, x, columns);
}
