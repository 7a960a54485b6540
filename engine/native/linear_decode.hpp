// Weight rows to float32, bit for bit as the formats define their values.
#pragma once
#include <bit>

#include "linear_types.hpp"

inline float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    // Moved into a float's exponent range by a product that is exact for subnormal halves too.
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest << 13) * 0x1p112f));
}

template <Type type> inline float float_weight(const std::uint8_t* row, std::size_t at) {
    if constexpr (type == Type::F32) return reinterpret_cast<const float*>(row)[at];
    const std::uint16_t half = reinterpret_cast<const std::uint16_t*>(row)[at];
    if constexpr (type == Type::F16) return half_to_float(half);
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

// Decodes the `n_inputs` weights of one row.
void decode_row(Type type, const std::uint8_t* row, std::size_t n_inputs, float* out);

// Bytes of a row of `n_inputs` weights, or 0 where they do not fill whole blocks.
std::size_t row_bytes(Type type, std::size_t n_inputs);
