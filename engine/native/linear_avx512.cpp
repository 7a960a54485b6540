// Products with AVX-512 and its byte products (VNNI): two rows of weights side by side, with the bits of AVX2.
#if defined(__x86_64__)
#include "linear_vector.hpp"

// GCC 12 says so of its own intrinsics (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")

namespace {

#include "linear_avx512.inl"
#include "linear_vector.inl"

}  // namespace

#pragma GCC pop_options

const Kernels avx512_kernels = {multiply, pack_256, pack_32};
#endif
