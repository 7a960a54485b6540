// Norms, gates, rope, convolution, delta rule, attention: float32, every output element with one fixed order of sums.
#include "ops.hpp"

static bool has_avx2_fma_f16c() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#else
    return false;
#endif
}

bool use_avx2 = has_avx2_fma_f16c();

void bind_ops(nb::module_& module) {
    bind_pointwise(module);
    bind_delta(module);
    bind_attention(module);
    module.def(
        "enable_avx2", [](bool enabled) { return use_avx2 = enabled && has_avx2_fma_f16c(); }, nb::arg("enabled"),
        "Whether operations may use AVX2; returns whether they do.");
}
