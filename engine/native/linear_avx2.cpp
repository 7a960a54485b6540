// Products with AVX2, FMA and F16C: a row of weights at a time.
#if defined(__x86_64__)
#include "linear_vector.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace {

#include "linear_avx2.inl"
#include "linear_vector.inl"

}  // namespace

#pragma GCC pop_options

const Kernels avx2_kernels = {multiply, pack_256, pack_32};
#endif
