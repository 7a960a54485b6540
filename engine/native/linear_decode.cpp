#include "linear_decode.hpp"

#include "linear_unpack.hpp"

IqTables iq_tables;

namespace {

template <Bytes values> INLINE float value(std::uint8_t byte) {
    return static_cast<float>(values == Bytes::unsigned_ ? byte : static_cast<std::int8_t>(byte));
}

template <Type type> struct Decode256 {
    static void row(const std::uint8_t* row, std::size_t n_inputs, float* out) {
        using Traits = Traits256<type>;
        Block256 block;
        for (std::size_t at = 0; at < n_inputs; at += 256, row += Traits::bytes) {
            Traits::unpack(row, block);
            const float d = half_to_float(block.d) * Traits::factor, dmin = half_to_float(block.dmin);
            for (std::size_t i = 0; i < 256; ++i) {
                const std::size_t part = i / 16;
                float weight = value<Traits::values>(block.q[i]);
                // An offset is a whole number of steps, taken off before the scale to round but once.
                if constexpr (Traits::lows == Lows::offset) weight -= static_cast<float>(Traits::offset);
                weight *= d * static_cast<float>(block.scales[part]);
                if constexpr (Traits::lows == Lows::scaled) weight -= dmin * static_cast<float>(block.lows[part]);
                out[at + i] = weight;
            }
        }
    }
};

template <Type type> struct Decode32 {
    static void row(const std::uint8_t* row, std::size_t n_inputs, float* out) {
        using Traits = Traits32<type>;
        Blocks32 blocks;
        for (std::size_t at = 0; at < n_inputs; at += 32, row += Traits::bytes) {
            unpack_blocks<type>(row, 1, blocks);
            const float d = half_to_float(blocks.d[0]);
            for (std::size_t i = 0; i < 32; ++i) {
                const float weight = value<Traits::values>(blocks.q[i]) - static_cast<float>(Traits::offset);
                out[at + i] = d * weight;
                if constexpr (Traits::has_m) out[at + i] += half_to_float(blocks.m[0]);
            }
        }
    }
};

template <Type type> void decode_floats(const std::uint8_t* row, std::size_t n_inputs, float* out) {
    for (std::size_t i = 0; i < n_inputs; ++i) out[i] = float_weight<type>(row, i);
}

}  // namespace

void decode_row(Type type, const std::uint8_t* row, std::size_t n_inputs, float* out) {
    switch (type) {
        case Type::F32: return decode_floats<Type::F32>(row, n_inputs, out);
        case Type::F16: return decode_floats<Type::F16>(row, n_inputs, out);
        case Type::BF16: return decode_floats<Type::BF16>(row, n_inputs, out);
#define PASCAL_CASE(kind, type) \
    case Type::type: return kind<Type::type>::row(row, n_inputs, out);
            PASCAL_256_TYPES(PASCAL_CASE, Decode256)
            PASCAL_32_TYPES(PASCAL_CASE, Decode32)
#undef PASCAL_CASE
    }
}

std::size_t row_bytes(Type type, std::size_t n_inputs) {
    switch (type) {
        case Type::F32: return 4 * n_inputs;
        case Type::F16:
        case Type::BF16: return 2 * n_inputs;
#define PASCAL_CASE(size, type) \
    case Type::type: return n_inputs % size == 0 ? n_inputs / size * Traits##size<Type::type>::bytes : 0;
#define PASCAL_CASE_256(kind, type) PASCAL_CASE(256, type)
#define PASCAL_CASE_32(kind, type) PASCAL_CASE(32, type)
            PASCAL_256_TYPES(PASCAL_CASE_256, )
            PASCAL_32_TYPES(PASCAL_CASE_32, )
#undef PASCAL_CASE
#undef PASCAL_CASE_256
#undef PASCAL_CASE_32
    }
    return 0;
}
