// Rows of quantised weights times columns: the loops around a kind of weights (Kind256, Kind32).

constexpr std::size_t row_tile = 4;

// Weights that are needed soon: the processor's own guess begins anew on every page, and does not see that the rows of
// a tile lie one behind the other.
template <_mm_hint hint> INLINE void fetch(const Rows& rows, std::size_t offset, std::size_t bytes) {
    for (const std::uint8_t* from : rows.at)
        for (std::size_t i = 0; i < bytes; i += 64)
            _mm_prefetch(reinterpret_cast<const char*>(from + offset + i), hint);
}

// Makes the compiler read the weights anew, once for all columns of a tile: left to itself it takes them for variables,
// of which there are too many for the registers, and reads each again for every column.
INLINE void keep_in_memory(const void* weights) { asm volatile("" : : "r"(weights) : "memory"); }

// A vector of rows after the other, with the sums of all columns in registers.
template <typename Kind, int n> void multiply_few(const RowRange& rows, const Activations& x, const Columns& columns) {
    const std::size_t n_groups = Kind::groups(rows);
    typename Kind::Weights weights;
    for (std::size_t row = 0; row < rows.count; row += rows_at_once) {
        const Rows data = rows_from(rows, row);
        Floats sums[n];
        std::size_t at[n];
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            sums[c] = Floats{};
            at[c] = columns.from[c];
        }
        for (std::size_t group = 0; group < n_groups; ++group) {
            fetch<_MM_HINT_T0>(data, group * Kind::group_bytes + 2048, Kind::group_bytes);
            Kind::unpack_group(data, group, rows.row_bytes, weights);
            if constexpr (n > 1) keep_in_memory(&weights);
            Kind::template add<n>(weights, x, at, sums);
#pragma GCC unroll 4
            for (int c = 0; c < n; ++c) at[c] += x.n_columns;
        }
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) store_sums(sums[c], data.count, columns.out + columns.to[c] * columns.stride + row);
    }
}

// A few rows group by group: of so many columns only the activations of one group fit the first-level cache.
template <typename Kind> void multiply_many(const RowRange& rows, const Activations& x, const Columns& columns) {
    const std::size_t n_groups = Kind::groups(rows), n_columns = columns.count;
    typename Kind::Weights weights;
    Floats sums[row_tile / rows_at_once * most_columns];
    for (std::size_t first = 0; first < rows.count; first += row_tile) {
        const std::size_t stop = std::min(first + row_tile, rows.count);
        for (Floats& sum : sums) sum = Floats{};
        for (std::size_t group = 0; group < n_groups; ++group)
            for (std::size_t row = first; row < stop; row += rows_at_once) {
                const Rows data = rows_from(rows, row);
                fetch<_MM_HINT_T1>(data, row_tile * rows.row_bytes + group * Kind::group_bytes, Kind::group_bytes);
                Kind::unpack_group(data, group, rows.row_bytes, weights);
                Floats* sum = sums + (row - first) / rows_at_once * n_columns;
                const std::size_t base = group * x.n_columns;
                for (std::size_t i = 0; i < n_columns; ++i) {
                    const std::size_t at = base + columns.from[i];
                    Kind::template add<1>(weights, x, &at, sum + i);
                }
            }
        for (std::size_t i = 0; i < n_columns; ++i)
            for (std::size_t row = first; row < stop; row += rows_at_once)
                store_sums(sums[(row - first) / rows_at_once * n_columns + i], rows.count - row,
                           columns.out + columns.to[i] * columns.stride + row);
    }
}

template <typename Kind> void multiply_quantised(const RowRange& rows, const Activations& x, const Columns& columns) {
    switch (columns.count) {
        case 1: return multiply_few<Kind, 1>(rows, x, columns);
        case 2: return multiply_few<Kind, 2>(rows, x, columns);
        case 3: return multiply_few<Kind, 3>(rows, x, columns);
        case 4: return multiply_few<Kind, 4>(rows, x, columns);
        default: return multiply_many<Kind>(rows, x, columns);
    }
}
