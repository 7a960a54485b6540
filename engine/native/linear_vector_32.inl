// Types of 32-blocks.

struct Weights32 {
    Ints q[8];    // eight blocks, as arrange_blocks leaves them
    Floats d, m;  // a lane for each block
};

template <Type type> struct Kind32 {
    using Traits = Traits32<type>;
    using Weights = Weights32;
    static constexpr std::size_t group_bytes = 8 * Traits::bytes;
    static constexpr int offset = Traits::offset + shift<Traits::values>;

    INLINE std::size_t groups(const RowRange& rows) { return (rows.row_bytes / Traits::bytes + 7) / 8; }

    INLINE Ints values(const Rows& blocks) {
        if constexpr (Traits::packing == Packing::bytes) return load_rows(blocks, Traits::values_at);
        if constexpr (Traits::packing == Packing::levels) return unpack_level_bytes(blocks, Traits::values_at);
        const Ints low = unpack_halves(blocks, Traits::values_at);
        if constexpr (Traits::fifth_at == 0) return low;
        return add_sixteens(
            low, [&](int row) __attribute__((always_inline)) { return read<int>(blocks.at[row] + Traits::fifth_at); });
    }

    // The half floats at `place` of eight blocks.
    INLINE Floats eight(const Rows& blocks, std::size_t place) {
        return halves_of_each_row([&](int row) __attribute__((always_inline)) {
            std::uint16_t halves[8];
#pragma GCC unroll 8
            for (std::size_t i = 0; i < 8; ++i)
                halves[i] = read<std::uint16_t>(blocks.at[row] + i * Traits::bytes + place);
            return load_half(halves);
        });
    }

    INLINE void unpack_group(const Rows& rows, std::size_t group, std::size_t row_bytes, Weights& out) {
        const Rows blocks = behind(rows, group * 8 * Traits::bytes);
        const std::size_t left = row_bytes / Traits::bytes - group * 8;
        if (left < 8) return unpack_last(blocks, left, out);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8; ++i) out.q[i] = values(behind(blocks, i * Traits::bytes));
        arrange_blocks<Traits::values>(out.q);
        out.d = eight(blocks, 0);
        if constexpr (Traits::has_m) out.m = eight(blocks, 2);
    }

    static __attribute__((noinline)) void unpack_last(const Rows& blocks, std::size_t count, Weights& out) {
        Blocks32 plain[rows_at_once];
        for (std::size_t row = 0; row < rows_at_once; ++row) unpack_blocks<type>(blocks.at[row], count, plain[row]);
        for (int i = 0; i < 8; ++i)
            out.q[i] = each_row([&](int row) __attribute__((always_inline)) { return load(plain[row].q + 32 * i); });
        arrange_blocks<Traits::values>(out.q);
        out.d = halves_of_each_row([&](int row) __attribute__((always_inline)) { return load_half(plain[row].d); });
        if constexpr (Traits::has_m)
            out.m = halves_of_each_row([&](int row) __attribute__((always_inline)) { return load_half(plain[row].m); });
    }

    // Adds the products of eight blocks of weights and of activations, a block in each lane, for each of n columns.
    template <int n> INLINE void add(const Weights& weights, const Activations& x, const std::size_t* at, Floats* out) {
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            const Group32& group = x.of_32.data()[at[c]];
            Ints products = dot_blocks<Traits::values>(weights.q, group.q);
            const Floats scales = for_each_row(_mm256_loadu_ps(x.scales_32.data() + at[c] * 8));
            if constexpr (offset != 0 || Traits::has_m) {
                const Ints all = for_each_row(load(group.sums));
                if constexpr (Traits::has_m) out[c] = fma(weights.m * scales, to_floats(all), out[c]);
                else products = subtract(products, times(all, offset));
            }
            out[c] = fma(weights.d * scales, to_floats(products), out[c]);
        }
    }
};
