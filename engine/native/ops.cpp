// Norms, gates, rope, convolution, delta rule, attention: float32, every output element with one fixed order of sums.
#include <nanobind/ndarray.h>

#include <cmath>

#include "bind.hpp"
#include "threads.hpp"

namespace nb = nanobind;

using In = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

// out[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight for every row r of the last axis.
static void rms_norm(const In& x, const In& weight, float eps, const Out& out) {
    const std::size_t width = weight.size(), rows = x.size() / width;
    nb::gil_scoped_release release;
    parallel_for(rows, [&](std::size_t row) {
        const float* in = x.data() + row * width;
        float sum = 0;
        for (std::size_t i = 0; i < width; ++i) sum += in[i] * in[i];
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
        for (std::size_t i = 0; i < width; ++i) out.data()[row * width + i] = in[i] * scale * weight.data()[i];
    });
}

void bind_ops(nb::module_& module) { module.def("rms_norm", &rms_norm, nb::arg("x"), nb::arg("weight"), nb::arg("eps"), nb::arg("out")); }
