// Types of 256-blocks.

struct Weights256 {
    Ints q[8], scales[8];  // scales: each scale beside the products that it multiplies
    Ints lows;
    Floats d, dmin;
};

INLINE __m256i words(int low, int high) {
    return _mm256_setr_m128i(_mm_set1_epi16(static_cast<short>((2 * low) | (2 * low + 1) << 8)),
                             _mm_set1_epi16(static_cast<short>((2 * high) | (2 * high + 1) << 8)));
}

// Sixteen scales of each row to one for each of the 16 products of each 32 weights.
INLINE void spread_scales(Ints scales, Ints* out) {
    const Ints first = repeat_half<0>(scales), second = repeat_half<1>(scales);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        out[i] = shuffle_bytes(first, for_each_row(words(2 * i, 2 * i + 1)));
        out[4 + i] = shuffle_bytes(second, for_each_row(words(2 * i, 2 * i + 1)));
    }
}

// The half float at `offset` of each block.
INLINE Floats number_at(const Rows& blocks, std::size_t offset) {
    return number_of_each_row([&](int row) __attribute__((always_inline)) {
        return from_half(read<std::uint16_t>(blocks.at[row] + offset));
    });
}

template <Type type> FORCED void unpack(const Rows& blocks, Weights256& out) {
    using Traits = Traits256<type>;
    Block256 plain[rows_at_once];
#pragma GCC unroll 2
    for (std::size_t row = 0; row < rows_at_once; ++row) Traits::unpack(blocks.at[row], plain[row]);
    const auto gather = [&](const auto& part) __attribute__((always_inline)) {
        return each_row([&](int row) __attribute__((always_inline)) { return load(part(plain[row])); });
    };
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
        out.q[i] = gather([i](const Block256& block) __attribute__((always_inline)) { return block.q + 32 * i; });
    spread_scales(gather([](const Block256& block) __attribute__((always_inline)) { return block.scales; }),
                  out.scales);
    if constexpr (Traits::lows != Lows::none)
        out.lows = gather([](const Block256& block) __attribute__((always_inline)) { return block.lows; });
    out.d = number_of_each_row(
        [&](int row) __attribute__((always_inline)) { return from_half(plain[row].d) * Traits::factor; });
    if constexpr (Traits::lows == Lows::scaled)
        out.dmin = number_of_each_row(
            [&](int row) __attribute__((always_inline)) { return from_half(plain[row].dmin); });
}

// Eight bytes, each twice, as sixteen words.
INLINE __m256i twice(std::uint64_t bytes) {
    const __m128i once = _mm_cvtsi64_si128(static_cast<long long>(bytes));
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(once, once));
}

INLINE void unpack_k_head(const Rows& blocks, Weights256& out) {
    std::uint64_t scales[rows_at_once], lows[rows_at_once];
#pragma GCC unroll 2
    for (std::size_t row = 0; row < rows_at_once; ++row) k_scales(blocks.at[row] + 4, scales[row], lows[row]);
    spread_scales(each_row([&](int row) __attribute__((always_inline)) { return twice(scales[row]); }), out.scales);
    out.lows = each_row([&](int row) __attribute__((always_inline)) { return twice(lows[row]); });
    out.d = number_at(blocks, 0);
    out.dmin = number_at(blocks, 2);
}

template <> FORCED void unpack<Type::Q4_K>(const Rows& blocks, Weights256& out) {
    const Ints low = bytes_of(15);
    unpack_k_head(blocks, out);
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
        const Ints bytes = load_rows(blocks, 16 + 32 * part);
        out.q[2 * part] = bytes & low;
        out.q[2 * part + 1] = shift_right(bytes, 4) & low;
    }
}

template <> FORCED void unpack<Type::Q5_K>(const Rows& blocks, Weights256& out) {
    const Ints low = bytes_of(15), fifth = bytes_of(16), high = load_rows(blocks, 16);
    unpack_k_head(blocks, out);
    // Bit n of `high` belongs to values 32 n and on; it is moved to bit 4.
    const Ints fifths[8] = {shift_left(high, 4), shift_left(high, 3),  shift_left(high, 2),  shift_left(high, 1),
                            high,                shift_right(high, 1), shift_right(high, 2), shift_right(high, 3)};
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
        const Ints bytes = load_rows(blocks, 48 + 32 * part);
        out.q[2 * part] = (bytes & low) | (fifths[2 * part] & fifth);
        out.q[2 * part + 1] = (shift_right(bytes, 4) & low) | (fifths[2 * part + 1] & fifth);
    }
}

template <> FORCED void unpack<Type::Q6_K>(const Rows& blocks, Weights256& out) {
    const Ints low = bytes_of(15), high = bytes_of(48);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
        const Ints first = load_rows(blocks, 64 * half), second = load_rows(blocks, 64 * half + 32);
        const Ints bits = load_rows(blocks, 128 + 32 * half);
        Ints* q = out.q + 4 * half;
        q[0] = (first & low) | (shift_left(bits, 4) & high);
        q[1] = (second & low) | (shift_left(bits, 2) & high);
        q[2] = (shift_right(first, 4) & low) | (bits & high);
        q[3] = (shift_right(second, 4) & low) | (shift_right(bits, 2) & high);
    }
    const Ints scales = each_row([&](int row) __attribute__((always_inline)) {
        return _mm256_cvtepi8_epi16(load_half(blocks.at[row] + 192));
    });
    spread_scales(scales, out.scales);
    out.lows = shift_left(scales, 5);
    out.d = number_at(blocks, 208);
}

// Thirty-two values of four bits: low halves first, then high halves.
INLINE Ints unpack_halves(const Rows& blocks, std::size_t offset) {
    const Ints both = each_row([&](int row) __attribute__((always_inline)) {
        const __m128i bytes = load_half(blocks.at[row] + offset);
        return _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
    });
    return both & bytes_of(15);
}

// The same as numbers of uneven levels.
INLINE Ints unpack_level_bytes(const Rows& blocks, std::size_t offset) {
    const __m256i levels = _mm256_broadcastsi128_si256(load_half(iq_tables.levels));
    return shuffle_bytes(for_each_row(levels), unpack_halves(blocks, offset));
}

template <> FORCED void unpack<Type::IQ4_XS>(const Rows& blocks, Weights256& out) {
    const Ints scales = each_row([&](int row) __attribute__((always_inline)) {
        Block256 plain;
        Traits256<Type::IQ4_XS>::unpack_scales(blocks.at[row], plain);
        return load(plain.scales);
    });
    spread_scales(scales, out.scales);
    out.d = number_at(blocks, 0);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) out.q[i] = unpack_level_bytes(blocks, 8 + 16 * i);
}

template <Type type> struct Kind256 {
    using Traits = Traits256<type>;
    using Weights = Weights256;
    static constexpr std::size_t group_bytes = Traits::bytes;

    INLINE std::size_t groups(const RowRange& rows) { return rows.row_bytes / Traits::bytes; }

    INLINE void unpack_group(const Rows& rows, std::size_t group, std::size_t, Weights& out) {
        unpack<type>(behind(rows, group * Traits::bytes), out);
    }

    // Adds the products of a block of weights of each row and one of activations for each of n columns.
    template <int n>
    INLINE void add(const Weights& weights, const Activations& x, const std::size_t* at, Floats* sums) {
        const Group256* groups = x.of_256.data();
        Ints dots[n];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            const Ints q = weights.q[i], scales = weights.scales[i];  // once for all columns
#pragma GCC unroll 4
            for (int c = 0; c < n; ++c) {
                const Ints activations = for_each_row(load(groups[at[c]].q + 32 * i));
                const Ints before = i == 0 ? Ints{} : dots[c];
                dots[c] = add_products<Traits::values>(before, q, activations, scales);
                asm("" : "+v"(dots[c]));
            }
        }
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            const Floats scale = for_each_row(x.scales_256.data()[at[c]]);
            if constexpr (Traits::lows != Lows::none) {
                const Ints lows = add_pairs(weights.lows, for_each_row(load(groups[at[c]].sums)));
                if constexpr (Traits::lows == Lows::offset) dots[c] = subtract(dots[c], lows);
                else sums[c] = fma_negated(weights.dmin * scale, to_floats(lows), sums[c]);
            }
            sums[c] = fma(weights.d * scale, to_floats(dots[c]), sums[c]);
        }
    }
};
