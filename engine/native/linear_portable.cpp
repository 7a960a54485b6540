// Products in plain C++, for processors without AVX2; every output has one order of sums.
#include <algorithm>
#include <bit>
#include <cmath>

#include "linear_decode.hpp"
#include "linear_unpack.hpp"

namespace {

template <Bytes values> INLINE int value(std::uint8_t byte) {
    return values == Bytes::unsigned_ ? byte : static_cast<std::int8_t>(byte);
}

template <Bytes values> INLINE int dot(const std::uint8_t* weights, const std::int8_t* activations, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += value<values>(weights[i]) * activations[i];
    return sum;
}

template <Type type> struct Kind256 {
    using Traits = Traits256<type>;
    using Weights = Block256;

    INLINE std::size_t groups(const RowRange& rows) { return rows.row_bytes / Traits::bytes; }

    INLINE void unpack_group(const std::uint8_t* row, std::size_t group, std::size_t, Weights& out) {
        Traits::unpack(row + group * Traits::bytes, out);
    }

    INLINE float add(const Weights& weights, const Activations& x, std::size_t at, float sum) {
        const std::int8_t* q = x.of_256.data()[at].q;
        const std::int16_t* sums = x.of_256.data()[at].sums;
        int dots = 0, lows = 0;
        for (int i = 0; i < 16; ++i)
            dots += weights.scales[i] * dot<Traits::values>(weights.q + 16 * i, q + 16 * i, 16);
        if constexpr (Traits::lows != Lows::none)
            for (int i = 0; i < 16; ++i) lows += weights.lows[i] * sums[i];
        const float scale = x.scales_256.data()[at];
        if constexpr (Traits::lows == Lows::scaled)
            sum -= half_to_float(weights.dmin) * scale * static_cast<float>(lows);
        else dots -= lows;
        return sum + half_to_float(weights.d) * Traits::factor * scale * static_cast<float>(dots);
    }
};

template <Type type> struct Kind32 {
    using Traits = Traits32<type>;
    using Weights = Blocks32;

    INLINE std::size_t groups(const RowRange& rows) { return (rows.row_bytes / Traits::bytes + 7) / 8; }

    INLINE void unpack_group(const std::uint8_t* row, std::size_t group, std::size_t row_bytes, Weights& out) {
        const std::size_t from = group * 8, left = row_bytes / Traits::bytes - from;
        unpack_blocks<type>(row + from * Traits::bytes, std::min<std::size_t>(left, 8), out);
    }

    INLINE float add(const Weights& weights, const Activations& x, std::size_t at, float sum) {
        const std::int8_t* q = x.of_32.data()[at].q;
        for (std::size_t i = 0; i < 8; ++i) {
            const float scale = x.scales_32.data()[at * 8 + i];
            const int all = x.of_32.data()[at].sums[i];
            const int product = dot<Traits::values>(weights.q + 32 * i, q + 32 * i, 32) - Traits::offset * all;
            sum += half_to_float(weights.d[i]) * scale * static_cast<float>(product);
            if constexpr (Traits::has_m) sum += half_to_float(weights.m[i]) * scale * static_cast<float>(all);
        }
        return sum;
    }
};

template <typename Kind> void multiply_quantised(const RowRange& rows, const Activations& x, const Columns& columns) {
    typename Kind::Weights weights;
    float sums[most_columns];
    for (std::size_t row = 0; row < rows.count; ++row) {
        std::fill_n(sums, columns.count, 0.0f);
        for (std::size_t group = 0; group < Kind::groups(rows); ++group) {
            Kind::unpack_group(rows.data + row * rows.row_bytes, group, rows.row_bytes, weights);
            for (std::size_t i = 0; i < columns.count; ++i)
                sums[i] = Kind::add(weights, x, group * x.n_columns + columns.from[i], sums[i]);
        }
        for (std::size_t i = 0; i < columns.count; ++i) columns.out[columns.to[i] * columns.stride + row] = sums[i];
    }
}

template <Type type> void multiply_floats(const RowRange& rows, const Activations& x, const Columns& columns) {
    for (std::size_t row = 0; row < rows.count; ++row)
        for (std::size_t i = 0; i < columns.count; ++i) {
            const float* in = x.x + columns.from[i] * x.n_inputs;
            float lanes[8] = {};
            for (std::size_t at = 0; at < x.n_inputs; ++at)
                lanes[at % 8] += float_weight<type>(rows.data + row * rows.row_bytes, at) * in[at];
            float sum = 0;
            for (float lane : lanes) sum += lane;
            columns.out[columns.to[i] * columns.stride + row] = sum;
        }
}

// The largest magnitude; compared as integers, in which NaN is above all numbers.
float largest(const float* x, std::size_t count) {
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffff);
    return std::bit_cast<float>(most);
}

int quantise(const float* x, std::size_t count, float inverse, std::int8_t* out) {
    int sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const float step = std::nearbyint(x[i] * inverse);
        out[i] = std::isnan(step) ? std::int8_t{0} : static_cast<std::int8_t>(step);
        sum += out[i];
    }
    return sum;
}

void pack_256(Activations& x, std::size_t column) {
    const float* in = x.x + column * x.n_inputs;
    for (std::size_t group = 0; group < x.n_inputs / group_size; ++group, in += group_size) {
        const std::size_t at = group * x.n_columns + column;
        const float most = largest(in, group_size);
        x.scales_256.data()[at] = scale_of(most);
        for (std::size_t i = 0; i < 16; ++i)
            x.of_256.data()[at].sums[i] = static_cast<std::int16_t>(
                quantise(in + 16 * i, 16, inverse_scale(most), x.of_256.data()[at].q + 16 * i));
    }
}

void pack_32(Activations& x, std::size_t column) {
    const float* in = x.x + column * x.n_inputs;
    const std::size_t n_blocks = x.n_inputs / 32;
    for (std::size_t block = 0; block < (n_blocks + 7) / 8 * 8; ++block, in += 32) {
        const std::size_t at = block / 8 * x.n_columns + column, place = block % 8, count = block < n_blocks ? 32 : 0;
        Group32& group = x.of_32.data()[at];
        const float most = largest(in, count);
        x.scales_32.data()[at * 8 + place] = short_scale_of(most);
        std::fill_n(group.q + 32 * place, 32, std::int8_t{0});
        group.sums[place] = quantise(in, count, inverse_scale(most), group.q + 32 * place);
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

const Kernels portable_kernels = {multiply, pack_256, pack_32};
