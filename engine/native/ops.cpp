// Norms, gates, rope, convolution, delta rule, attention: float32, every output element with one fixed order of sums.
#include "ops.hpp"

void bind_ops(nb::module_& module) {
    bind_pointwise(module);
    bind_delta(module);
    bind_attention(module);
}
