// Compiles the kernels of PASCAL_KERNELS for any processor, for AVX2, FMA and F16C, and for AVX-512.
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

namespace portable {
#include "simd.inl"
#include PASCAL_KERNELS
}  // namespace portable

#if defined(__x86_64__)
#define PASCAL_AVX2
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
namespace avx2 {
#include "simd.inl"
#include PASCAL_KERNELS
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl")
#endif
#define PASCAL_AVX512
namespace avx512 {
#include "simd.inl"
#include PASCAL_KERNELS
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef PASCAL_AVX512
#undef PASCAL_AVX2
#endif
