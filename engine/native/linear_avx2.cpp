// Products with AVX2, FMA and F16C. Every output has one order of sums: eight lanes run down the row, block after
// block, and are added up at its end; neither the number of columns nor the tile changes it.
#if defined(__x86_64__)
#include "linear_avx2_32.hpp"
#include "linear_avx2_256.hpp"
#include "linear_avx2_floats.hpp"
#include "linear_avx2_pack.hpp"
#include "linear_avx2_rows.hpp"

namespace {

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

const Kernels avx2_kernels = {"avx2", multiply, pack_256, pack_32};
#endif
