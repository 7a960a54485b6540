// What weight blocks unpack to: plain bytes with integer scales, the same for every instruction set.
#pragma once
#include <cstdint>
#include <cstring>

#include "linear_types.hpp"

#define FORCED inline __attribute__((always_inline))
#define INLINE static FORCED

enum class Bytes { unsigned_, signed_ };
enum class Lows { none, offset, scaled };

// 256 weights of a type of 256-blocks. Weight i is d * factor * scales[i / 16] * value, where value is q[i] as the
// type's traits say (unsigned or signed), less
//   offset: d * factor * lows[i / 16]     (values shifted to be unsigned)
//   scaled: dmin * lows[i / 16]
struct alignas(32) Block256 {
    std::uint8_t q[256];
    std::int16_t scales[16], lows[16];
    std::uint16_t d, dmin;  // half floats
};

// Eight 32-blocks: weight i is d[i / 32] * (value - traits' offset) + m[i / 32].
struct alignas(32) Blocks32 {
    std::uint8_t q[256];
    std::uint16_t d[8], m[8];  // half floats
};

template <typename T> INLINE T read(const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <Type type> struct Traits256;
template <Type type> struct Traits32;
