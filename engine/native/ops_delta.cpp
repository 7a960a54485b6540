// The recurrent operations: causal convolution and the gated delta rule, batched over rows of a pool.
#include <vector>

#include "ops.hpp"
#include "ops_delta.hpp"

#define PASCAL_KERNELS "delta_kernels.inl"
#include "targets.inl"

namespace {

using Weight = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Kernel = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConvPool = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using StatePool = nb::ndarray<float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

void causal_conv(const In& in, const Kernel& kernel, const ConvPool& pool, const Indices& rows, const Indices& offsets,
                 const Out& out) {
    const Tokens x(in);
    const std::size_t n_channels = x.width, n_taps = kernel.shape(0), kept = (n_taps - 1) * n_channels;
    const Sequences sequences(rows, offsets, pool.shape(0), x.count);
    require(n_taps > 0 && kernel.shape(1) == n_channels && pool.shape(1) == n_taps - 1 && pool.shape(2) == n_channels &&
                out.size() == x.count * n_channels,
            "x, kernel, pool and out do not fit");
    nb::gil_scoped_release release;
    constexpr std::size_t channels = 512;
    const std::size_t n_pieces = (n_channels + channels - 1) / channels;
    parallel_for(sequences.count * n_pieces, [&](std::size_t piece) {
        const std::size_t i = piece / n_pieces, first = piece % n_pieces * channels, token = sequences.first(i);
        const ConvRun run{x.at(token), sequences.length(i), x.stride, kernel.data(), n_taps, n_channels,
                       pool.data() + static_cast<std::size_t>(rows.data()[i]) * kept, out.data() + token * n_channels};
        const std::size_t stop = std::min(n_channels, first + channels);
        PASCAL_DISPATCH(causal_conv, run, first, stop);
    });
}

void delta_gates(const In& alpha_in, const In& beta_in, const Weight& a, const Weight& dt, const Out& decay,
                 const Out& strength) {
    const Tokens alpha(alpha_in), beta(beta_in);
    const std::size_t width = alpha.width;
    require(beta.count == alpha.count && beta.width == width && a.size() == width && dt.size() == width &&
                decay.size() == alpha.count * width && strength.size() == decay.size(),
            "gates and weights do not fit");
    for (std::size_t token = 0; token < alpha.count; ++token)
        PASCAL_DISPATCH(delta_gates, alpha.at(token), beta.at(token), a.data(), dt.data(), width,
                        decay.data() + token * width, strength.data() + token * width);
}

void delta_rule(const In& q_in, const In& k_in, const In& v_in, const Weight& log_decay, const Weight& strength,
                const StatePool& pool, const Indices& rows, const Indices& offsets, const Out& out) {
    const Tokens q(q_in), k(k_in), v(v_in);
    const std::size_t n_heads = pool.shape(1), dim = pool.shape(2), width = n_heads * dim;
    const Sequences sequences(rows, offsets, pool.shape(0), q.count);
    require(pool.shape(3) == dim && q.width == width && k.width == width && v.width == width && k.count == q.count &&
                v.count == q.count && log_decay.size() == q.count * n_heads && strength.size() == log_decay.size() &&
                out.size() == q.count * width,
            "q, k, v, gates, pool and out do not fit");
    nb::gil_scoped_release release;
    std::vector<float> decay(log_decay.size());
    PASCAL_DISPATCH(exponentials, log_decay.data(), decay.size(), decay.data());
    const std::size_t n_tiles = (dim + delta_columns - 1) / delta_columns;
    parallel_for(sequences.count * n_heads * n_tiles, [&](std::size_t piece) {
        const std::size_t head = piece / n_tiles % n_heads, i = piece / n_tiles / n_heads, token = sequences.first(i);
        const std::size_t column = piece % n_tiles * delta_columns, at = head * dim;
        static thread_local std::vector<float> scratch;
        scratch.resize(dim * delta_columns);
        const DeltaRun run{q.at(token) + at, k.at(token) + at, v.at(token) + at, sequences.length(i), q.stride, k.stride,
                       v.stride, decay.data() + token * n_heads + head, strength.data() + token * n_heads + head,
                       n_heads, dim,
                       pool.data() + (static_cast<std::size_t>(rows.data()[i]) * n_heads + head) * dim * dim,
                       out.data() + token * width + at, width};
        PASCAL_DISPATCH(delta_rule, run, column, scratch.data());
    });
}

}  // namespace

void bind_delta(nb::module_& module) {
    using nb::arg;
    module.def("causal_conv", &causal_conv, arg("x"), arg("kernel"), arg("pool").noconvert(), arg("rows"),
               arg("offsets"), arg("out").noconvert());
    module.def("delta_gates", &delta_gates, arg("alpha"), arg("beta"), arg("a"), arg("dt"), arg("decay").noconvert(),
               arg("strength").noconvert());
    module.def("delta_rule", &delta_rule, arg("q"), arg("k"), arg("v"), arg("log_decay"), arg("strength"),
               arg("pool").noconvert(), arg("rows"), arg("offsets"), arg("out").noconvert());
}
