// Products with AVX2, FMA and F16C. Every output has one order of sums: eight lanes run down the row, block after
// block, and are added up at its end; neither the number of columns nor the tile changes it.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#include "linear_unpack.hpp"

// From here on; what is included above stays free of AVX2, so that no shared inline function needs it.
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace {

constexpr std::size_t row_tile = 4;

INLINE float from_half(std::uint16_t half) { return _cvtsh_ss(half); }

INLINE __m256 from_halves(const std::uint16_t* halves) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}

INLINE __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

INLINE float sum_lanes(__m256 lanes) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// Sums of neighbouring products, sixteen bits each. Unsigned weights are below 128, activations within +-127, so
// nothing saturates; of signed weights the sign goes over to the activations.
template <Bytes values> INLINE __m256i products(__m256i weights, const std::int8_t* activations) {
    if constexpr (values == Bytes::unsigned_) return _mm256_maddubs_epi16(weights, load(activations));
    return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(load(activations), weights));
}

// Types of 256-blocks ------------------------------------------------------------------------------------------------

struct Weights256 {
    __m256i q[8], scales[8];  // scales: each scale beside the products that it multiplies
    __m256i lows;
    float d, dmin;
};

INLINE __m256i words(int low, int high) {
    return _mm256_setr_m128i(_mm_set1_epi16(static_cast<short>((2 * low) | (2 * low + 1) << 8)),
                             _mm_set1_epi16(static_cast<short>((2 * high) | (2 * high + 1) << 8)));
}

// Sixteen scales to one for each of the 16 products of each 32 weights.
INLINE void spread_scales(__m256i scales, __m256i* out) {
    const __m256i first = _mm256_permute2x128_si256(scales, scales, 0x00);
    const __m256i second = _mm256_permute2x128_si256(scales, scales, 0x11);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        out[i] = _mm256_shuffle_epi8(first, words(2 * i, 2 * i + 1));
        out[4 + i] = _mm256_shuffle_epi8(second, words(2 * i, 2 * i + 1));
    }
}

template <Type type> FORCED void unpack(const std::uint8_t* block, Weights256& out) {
    using Traits = Traits256<type>;
    Block256 plain;
    Traits::unpack(block, plain);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) out.q[i] = load(plain.q + 32 * i);
    spread_scales(load(plain.scales), out.scales);
    if constexpr (Traits::lows != Lows::none) out.lows = load(plain.lows);
    out.d = from_half(plain.d) * Traits::factor;
    if constexpr (Traits::lows == Lows::scaled) out.dmin = from_half(plain.dmin);
}

// Eight bytes, each twice, as sixteen words.
INLINE __m256i twice(std::uint64_t bytes) {
    const __m128i once = _mm_cvtsi64_si128(static_cast<long long>(bytes));
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(once, once));
}

INLINE void unpack_k_head(const std::uint8_t* block, Weights256& out) {
    std::uint64_t scales, lows;
    k_scales(block + 4, scales, lows);
    spread_scales(twice(scales), out.scales);
    out.lows = twice(lows);
    out.d = from_half(read<std::uint16_t>(block));
    out.dmin = from_half(read<std::uint16_t>(block + 2));
}

template <> FORCED void unpack<Type::Q4_K>(const std::uint8_t* block, Weights256& out) {
    const __m256i low = _mm256_set1_epi8(15);
    unpack_k_head(block, out);
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
        const __m256i bytes = load(block + 16 + 32 * part);
        out.q[2 * part] = _mm256_and_si256(bytes, low);
        out.q[2 * part + 1] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low);
    }
}

template <> FORCED void unpack<Type::Q5_K>(const std::uint8_t* block, Weights256& out) {
    const __m256i low = _mm256_set1_epi8(15), fifth = _mm256_set1_epi8(16), high = load(block + 16);
    unpack_k_head(block, out);
    // Bit n of `high` belongs to values 32 n and on; it is moved to bit 4.
    const __m256i up[4] = {_mm256_slli_epi16(high, 4), _mm256_slli_epi16(high, 3), _mm256_slli_epi16(high, 2),
                           _mm256_slli_epi16(high, 1)};
    const __m256i down[4] = {high, _mm256_srli_epi16(high, 1), _mm256_srli_epi16(high, 2), _mm256_srli_epi16(high, 3)};
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
        const __m256i bytes = load(block + 48 + 32 * part);
        const __m256i even = part < 2 ? up[2 * part] : down[2 * part - 4];
        const __m256i odd = part < 2 ? up[2 * part + 1] : down[2 * part - 3];
        out.q[2 * part] = _mm256_or_si256(_mm256_and_si256(bytes, low), _mm256_and_si256(even, fifth));
        out.q[2 * part + 1] =
            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low), _mm256_and_si256(odd, fifth));
    }
}

template <> FORCED void unpack<Type::Q6_K>(const std::uint8_t* block, Weights256& out) {
    const __m256i low = _mm256_set1_epi8(15), high = _mm256_set1_epi8(48);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
        const __m256i first = load(block + 64 * half), second = load(block + 64 * half + 32);
        const __m256i bits = load(block + 128 + 32 * half);
        __m256i* q = out.q + 4 * half;
        q[0] = _mm256_or_si256(_mm256_and_si256(first, low), _mm256_and_si256(_mm256_slli_epi16(bits, 4), high));
        q[1] = _mm256_or_si256(_mm256_and_si256(second, low), _mm256_and_si256(_mm256_slli_epi16(bits, 2), high));
        q[2] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 4), low), _mm256_and_si256(bits, high));
        q[3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 4), low),
                               _mm256_and_si256(_mm256_srli_epi16(bits, 2), high));
    }
    const auto packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 192));
    const __m256i scales = _mm256_cvtepi8_epi16(packed);
    spread_scales(scales, out.scales);
    out.lows = _mm256_slli_epi16(scales, 5);
    out.d = from_half(read<std::uint16_t>(block + 208));
}

// Thirty-two values of four bits: low halves first, then high halves.
INLINE __m256i unpack_halves(const std::uint8_t* packed) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(packed));
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
}

// The same as numbers of uneven levels.
INLINE __m256i unpack_level_bytes(const std::uint8_t* packed) {
    const __m128i levels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(iq_tables.levels));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), unpack_halves(packed));
}

template <> FORCED void unpack<Type::IQ4_XS>(const std::uint8_t* block, Weights256& out) {
    Block256 plain;
    Traits256<Type::IQ4_XS>::unpack_scales(block, plain);
    spread_scales(load(plain.scales), out.scales);
    out.d = from_half(plain.d);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) out.q[i] = unpack_level_bytes(block + 8 + 16 * i);
}

template <Type type> struct Kind256 {
    using Traits = Traits256<type>;
    using Weights = Weights256;
    static constexpr std::size_t group_bytes = Traits::bytes;

    INLINE std::size_t groups(const RowRange& rows) { return rows.row_bytes / Traits::bytes; }

    INLINE void unpack_group(const std::uint8_t* row, std::size_t group, std::size_t, Weights& out) {
        unpack<type>(row + group * Traits::bytes, out);
    }

    // Adds the products of one block of weights and one of activations for each of n columns.
    template <int n> INLINE void add(const Weights& weights, const Activations& x, const std::size_t* at, __m256* sums) {
        const Group256* groups = x.of_256.data();
        __m256i dots[n];
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) dots[c] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
#pragma GCC unroll 4
            for (int c = 0; c < n; ++c) {
                const __m256i pairs = products<Traits::values>(weights.q[i], groups[at[c]].q + 32 * i);
                dots[c] = _mm256_add_epi32(dots[c], _mm256_madd_epi16(pairs, weights.scales[i]));
            }
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            const float scale = x.scales_256.data()[at[c]];
            if constexpr (Traits::lows != Lows::none) {
                const __m256i lows = _mm256_madd_epi16(weights.lows, load(groups[at[c]].sums));
                if constexpr (Traits::lows == Lows::offset) dots[c] = _mm256_sub_epi32(dots[c], lows);
                else sums[c] = _mm256_fnmadd_ps(_mm256_set1_ps(weights.dmin * scale), _mm256_cvtepi32_ps(lows), sums[c]);
            }
            sums[c] = _mm256_fmadd_ps(_mm256_set1_ps(weights.d * scale), _mm256_cvtepi32_ps(dots[c]), sums[c]);
        }
    }
};

// Types of 32-blocks -------------------------------------------------------------------------------------------------

struct Weights32 {
    __m256i q[8];
    __m256 d, m;  // a lane for each block
};

template <Type type> struct Kind32 {
    using Traits = Traits32<type>;
    using Weights = Weights32;
    static constexpr std::size_t group_bytes = 8 * Traits::bytes;

    INLINE std::size_t groups(const RowRange& rows) { return (rows.row_bytes / Traits::bytes + 7) / 8; }

    INLINE __m256i values(const std::uint8_t* block) {
        const std::uint8_t* packed = block + Traits::values_at;
        if constexpr (Traits::packing == Packing::bytes) return load(packed);
        if constexpr (Traits::packing == Packing::levels) return unpack_level_bytes(packed);
        const __m256i low = unpack_halves(packed);
        if constexpr (Traits::fifth_at == 0) return low;
        // Each byte of the word to eight places, of which each tests its bit.
        const __m256i bits = _mm256_set1_epi32(read<int>(block + Traits::fifth_at));
        const __m256i spread = _mm256_shuffle_epi8(
            bits, _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
        const __m256i masks = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
        const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, masks), masks);
        return _mm256_or_si256(low, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
    }

    // The half floats at `offset` of eight blocks.
    INLINE __m256 eight(const std::uint8_t* blocks, std::size_t offset) {
        std::uint16_t halves[8];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8; ++i) halves[i] = read<std::uint16_t>(blocks + i * Traits::bytes + offset);
        return from_halves(halves);
    }

    INLINE void unpack_group(const std::uint8_t* row, std::size_t group, std::size_t row_bytes, Weights& out) {
        const std::uint8_t* blocks = row + group * 8 * Traits::bytes;
        const std::size_t left = row_bytes / Traits::bytes - group * 8;
        if (left < 8) return unpack_last(blocks, left, out);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8; ++i) out.q[i] = values(blocks + i * Traits::bytes);
        out.d = eight(blocks, 0);
        if constexpr (Traits::has_m) out.m = eight(blocks, 2);
    }

    static __attribute__((noinline)) void unpack_last(const std::uint8_t* blocks, std::size_t count, Weights& out) {
        Blocks32 plain;
        unpack_blocks<type>(blocks, count, plain);
        for (int i = 0; i < 8; ++i) out.q[i] = load(plain.q + 32 * i);
        out.d = from_halves(plain.d);
        if constexpr (Traits::has_m) out.m = from_halves(plain.m);
    }

    INLINE __m256i dot(__m256i weights, const std::int8_t* q) {
        return _mm256_madd_epi16(products<Traits::values>(weights, q), _mm256_set1_epi16(1));
    }

    // The dot products of eight blocks, a lane for each.
    INLINE __m256i dots(const Weights& weights, const std::int8_t* q) {
        __m256i quarter[2];
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
            const __m256i* w = weights.q + 4 * half;
            const std::int8_t* a = q + 128 * half;
            quarter[half] = _mm256_hadd_epi32(_mm256_hadd_epi32(dot(w[0], a), dot(w[1], a + 32)),
                                              _mm256_hadd_epi32(dot(w[2], a + 64), dot(w[3], a + 96)));
        }
        return _mm256_add_epi32(_mm256_permute2x128_si256(quarter[0], quarter[1], 0x20),
                                _mm256_permute2x128_si256(quarter[0], quarter[1], 0x31));
    }

    // Adds the products of eight blocks of weights and of activations, a block in each lane, for each of n columns.
    template <int n> INLINE void add(const Weights& weights, const Activations& x, const std::size_t* at, __m256* out) {
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            __m256i products = dots(weights, x.of_32.data()[at[c]].q);
            const __m256 scales = _mm256_loadu_ps(x.scales_32.data() + at[c] * 8);
            if constexpr (Traits::offset != 0 || Traits::has_m) {
                const __m256i all = load(x.of_32.data()[at[c]].sums);
                if constexpr (Traits::has_m)
                    out[c] = _mm256_fmadd_ps(_mm256_mul_ps(weights.m, scales), _mm256_cvtepi32_ps(all), out[c]);
                else products = _mm256_sub_epi32(products, _mm256_mullo_epi32(all, _mm256_set1_epi32(Traits::offset)));
            }
            out[c] = _mm256_fmadd_ps(_mm256_mul_ps(weights.d, scales), _mm256_cvtepi32_ps(products), out[c]);
        }
    }
};

// Ahead of the processor's own guess, which begins anew on every page.
INLINE void fetch_ahead(const std::uint8_t* at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(at + 2048 + i), _MM_HINT_T0);
}

// Makes the compiler read the weights anew, once for all columns of a tile: left to itself it takes them for variables,
// of which there are too many for the registers, and reads each again for every column.
INLINE void keep_in_memory(const void* weights) { asm volatile("" : : "r"(weights) : "memory"); }

// Row after row, with the sums of all columns in registers.
template <typename Kind, int n> void multiply_few(const RowRange& rows, const Activations& x, const Columns& columns) {
    const std::size_t n_groups = Kind::groups(rows);
    typename Kind::Weights weights;
    for (std::size_t row = 0; row < rows.count; ++row) {
        const std::uint8_t* data = rows.data + row * rows.row_bytes;
        __m256 sums[n];
        std::size_t at[n];
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) {
            sums[c] = _mm256_setzero_ps();
            at[c] = columns.from[c];
        }
        for (std::size_t group = 0; group < n_groups; ++group) {
            fetch_ahead(data + group * Kind::group_bytes, Kind::group_bytes);
            Kind::unpack_group(data, group, rows.row_bytes, weights);
            if constexpr (n > 1) keep_in_memory(&weights);
            Kind::template add<n>(weights, x, at, sums);
#pragma GCC unroll 4
            for (int c = 0; c < n; ++c) at[c] += x.n_columns;
        }
#pragma GCC unroll 4
        for (int c = 0; c < n; ++c) columns.out[columns.to[c] * columns.stride + row] = sum_lanes(sums[c]);
    }
}

// A few rows group by group: of so many columns only the activations of one group fit the first-level cache.
template <typename Kind> void multiply_many(const RowRange& rows, const Activations& x, const Columns& columns) {
    const std::size_t n_groups = Kind::groups(rows), n_columns = columns.count;
    typename Kind::Weights weights;
    __m256 sums[row_tile * most_columns];
    for (std::size_t first = 0; first < rows.count; first += row_tile) {
        const std::size_t n_rows = std::min(row_tile, rows.count - first);
        for (std::size_t i = 0; i < n_rows * n_columns; ++i) sums[i] = _mm256_setzero_ps();
        for (std::size_t group = 0; group < n_groups; ++group)
            for (std::size_t row = 0; row < n_rows; ++row) {
                Kind::unpack_group(rows.data + (first + row) * rows.row_bytes, group, rows.row_bytes, weights);
                __m256* sum = sums + row * n_columns;
                const std::size_t base = group * x.n_columns;
                for (std::size_t i = 0; i < n_columns; ++i) {
                    const std::size_t at = base + columns.from[i];
                    Kind::template add<1>(weights, x, &at, sum + i);
                }
            }
        for (std::size_t i = 0; i < n_columns; ++i)
            for (std::size_t row = 0; row < n_rows; ++row)
                columns.out[columns.to[i] * columns.stride + first + row] = sum_lanes(sums[row * n_columns + i]);
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

// Float types --------------------------------------------------------------------------------------------------------

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

template <Type type, int n_rows, int n_columns>
INLINE void multiply_tile(const RowRange& rows, std::size_t row, const Activations& x, const Columns& columns,
                          std::size_t column) {
    __m256 sums[n_rows][n_columns];
    const std::uint8_t* weights[n_rows];
    const std::uint8_t* inputs[n_columns];
    for (int r = 0; r < n_rows; ++r) weights[r] = rows.data + (row + static_cast<std::size_t>(r)) * rows.row_bytes;
    for (int c = 0; c < n_columns; ++c)
        inputs[c] = reinterpret_cast<const std::uint8_t*>(x.x + columns.from[column + static_cast<std::size_t>(c)] * x.n_inputs);
#pragma GCC unroll 4
    for (int r = 0; r < n_rows; ++r)
#pragma GCC unroll 3
        for (int c = 0; c < n_columns; ++c) sums[r][c] = _mm256_setzero_ps();
    const std::size_t whole = x.n_inputs / 8 * 8, left = x.n_inputs - whole;
    for (std::size_t i = 0; i < whole; i += 8) {
        __m256 in[n_columns];
#pragma GCC unroll 3
        for (int c = 0; c < n_columns; ++c) in[c] = load_floats<Type::F32>(inputs[c], i);
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; ++r) {
            const __m256 weight = load_floats<type>(weights[r], i);
#pragma GCC unroll 3
            for (int c = 0; c < n_columns; ++c) sums[r][c] = _mm256_fmadd_ps(weight, in[c], sums[r][c]);
        }
    }
    if (left != 0)
        for (int r = 0; r < n_rows; ++r)
            for (int c = 0; c < n_columns; ++c)
                sums[r][c] = _mm256_fmadd_ps(load_tail<type>(weights[r], whole, left),
                                             load_tail<Type::F32>(inputs[c], whole, left), sums[r][c]);
    for (int r = 0; r < n_rows; ++r)
        for (int c = 0; c < n_columns; ++c)
            columns.out[columns.to[column + static_cast<std::size_t>(c)] * columns.stride + row + static_cast<std::size_t>(r)] =
                sum_lanes(sums[r][c]);
}

template <Type type, int n_rows>
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

// Activations --------------------------------------------------------------------------------------------------------

// The largest magnitude; compared as integers, in which NaN is above all numbers.
INLINE float largest(const float* x, int count) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (int i = 0; i < count; i += 8) most = _mm256_max_epi32(most, _mm256_and_si256(load(x + i), magnitude));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1))));
}

// Thirty-two values to bytes; gives their sums over 4 values each, lanes in another order within each half.
INLINE __m256i quantise(const float* x, float inverse, std::int8_t* out) {
    const __m256 by = _mm256_set1_ps(inverse);
    __m256i values[4];
    for (int i = 0; i < 4; ++i) values[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), by));
    const __m256i words = _mm256_packs_epi16(_mm256_packs_epi32(values[0], values[1]), _mm256_packs_epi32(values[2], values[3]));
    const __m256i bytes = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
}

INLINE int sum_four(__m128i lanes) {
    lanes = _mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, 0xb1)));
}

void pack_256(Activations& x, std::size_t column) {
    const float* in = x.x + column * x.n_inputs;
    for (std::size_t group = 0; group < x.n_inputs / group_size; ++group, in += group_size) {
        const std::size_t at = group * x.n_columns + column;
        const float most = largest(in, group_size), inverse = inverse_scale(most);
        x.scales_256.data()[at] = scale_of(most);
        for (std::size_t i = 0; i < 8; ++i) {
            const __m256i fours = quantise(in + 32 * i, inverse, x.of_256.data()[at].q + 32 * i);
            std::int16_t* sums = x.of_256.data()[at].sums + 2 * i;
            sums[0] = static_cast<std::int16_t>(sum_four(_mm256_castsi256_si128(fours)));
            sums[1] = static_cast<std::int16_t>(sum_four(_mm256_extracti128_si256(fours, 1)));
        }
    }
}

void pack_32(Activations& x, std::size_t column) {
    const float* in = x.x + column * x.n_inputs;
    const std::size_t n_blocks = x.n_inputs / 32;
    for (std::size_t block = 0; block < (n_blocks + 7) / 8 * 8; ++block, in += 32) {
        const std::size_t at = block / 8 * x.n_columns + column, place = block % 8;
        Group32& group = x.of_32.data()[at];
        const float most = block < n_blocks ? largest(in, 32) : 0;
        x.scales_32.data()[at * 8 + place] = scale_of(most);
        group.sums[place] = 0;
        if (block >= n_blocks) {
            std::memset(group.q + 32 * place, 0, 32);
            continue;
        }
        const __m256i fours = quantise(in, inverse_scale(most), group.q + 32 * place);
        group.sums[place] =
            sum_four(_mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1)));
    }
}

Kernels::Multiply multiply(Type type) {
    switch (type) {
        case Type::F32: return multiply_floats<Type::F32>;
        case Type::F16: return multiply_floats<Type::F16>;
        case Type::BF16: return multiply_floats<Type::BF16>;
#define PASCAL_CASE(kind, type) \
    case Type::type: return multiply_quantised<kind<Type::type>>;
            PASCAL_256_TYPES(PASCAL_CASE, Kind256)
            PASCAL_32_TYPES(PASCAL_CASE, Kind32)
#undef PASCAL_CASE
    }
    return nullptr;
}

}  // namespace

#pragma GCC pop_options

const Kernels avx2_kernels = {"avx2", multiply, pack_256, pack_32};
#endif
