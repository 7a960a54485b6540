// Operations on single tokens and heads.
#include <cstring>

#include "ops.hpp"

#define PASCAL_KERNELS "pointwise_kernels.inl"
#include "targets.inl"

namespace {

// Tokens a piece: enough to be worth a thread.
std::size_t grain(std::size_t width) { return 1 + 16384 / (width + 1); }

// work(token, from, to) for each token of x; out has its shape.
template <typename Work> void each_token(const Tokens& x, const Out& out, const Work& work) {
    require(out.size() == x.count * x.width, "out does not fit x");
    float* to = out.data();
    nb::gil_scoped_release release;
    parallel_ranges(x.count, grain(x.width), [&](std::size_t first, std::size_t stop) {
        for (std::size_t token = first; token < stop; ++token) work(token, x.at(token), to + token * x.width);
    });
}

void rms_norm(const In& in, const In& weight, float eps, const Out& out) {
    const Tokens x(in);
    const std::size_t width = weight.size();
    const float* weights = weight.data();
    require(weight.ndim() == 1 && (width == 1 || weight.stride(0) == 1) && width && x.width % width == 0,
            "the weight does not fit x");
    each_token(x, out, [&](std::size_t, const float* from, float* to) {
        for (std::size_t i = 0; i < x.width; i += width) PASCAL_DISPATCH(rms_norm, from + i, weights, eps, width, to + i);
    });
}

void l2_norm(const In& in, float eps, const Out& out) {
    const Tokens x(in);
    const std::size_t width = in.shape(in.ndim() - 1);
    each_token(x, out, [&](std::size_t, const float* from, float* to) {
        for (std::size_t i = 0; i < x.width; i += width) PASCAL_DISPATCH(l2_norm, from + i, eps, width, to + i);
    });
}

void silu_gate(const In& in, const In& gate_in, const Out& out) {
    const Tokens x(in), gate(gate_in);
    require(gate.count == x.count && gate.width == x.width, "the gate does not fit x");
    each_token(x, out, [&](std::size_t token, const float* from, float* to) {
        PASCAL_DISPATCH(silu_gate, from, gate.at(token), x.width, to);
    });
}

void sigmoid_gate(const In& in, const In& gate_in, const Out& out) {
    const Tokens x(in), gate(gate_in);
    require(gate.count == x.count && (gate.width == x.width || gate.width == 1), "the gate does not fit x");
    each_token(x, out, [&](std::size_t token, const float* from, float* to) {
        if (gate.width == 1)
            PASCAL_DISPATCH(sigmoid_scale, from, *gate.at(token), x.width, to);
        else
            PASCAL_DISPATCH(sigmoid_gate, from, gate.at(token), x.width, to);
    });
}

void add(const In& in, const In& other, const Out& out) {
    const Tokens x(in), y(other);
    require(y.count == x.count && y.width == x.width, "x and y do not fit");
    each_token(x, out, [&](std::size_t token, const float* from, float* to) {
        PASCAL_DISPATCH(add, from, y.at(token), x.width, to);
    });
}

using Table = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void rope(const In& in, const Table& cos, const Table& sin, const Indices& positions, const Out& out) {
    const Tokens x(in);
    const std::size_t head_dim = in.shape(in.ndim() - 1), half = cos.shape(1);
    require(2 * half <= head_dim && sin.shape(0) == cos.shape(0) && sin.shape(1) == half, "the table does not fit x");
    require(positions.size() == x.count, "positions and tokens do not agree");
    for (std::size_t i = 0; i < x.count; ++i)
        require(positions(i) >= 0 && static_cast<std::size_t>(positions(i)) < cos.shape(0), "no such position");
    each_token(x, out, [&](std::size_t token, const float* from, float* to) {
        const std::size_t at = static_cast<std::size_t>(positions.data()[token]) * half;
        for (std::size_t i = 0; i < x.width; i += head_dim)
            PASCAL_DISPATCH(rope, from + i, cos.data() + at, sin.data() + at, half, head_dim, to + i);
    });
}

// Heads in the order given.
void take_heads(const In& in, const Indices& heads, const Out& out) {
    const Tokens x(in);
    require(in.ndim() == 4, "x is an array [n, T, heads, D]");
    const std::size_t dim = in.shape(3), width = heads.size() * dim;
    require(out.size() == x.count * width, "out does not fit x");
    for (std::size_t i = 0; i < heads.size(); ++i)
        require(heads(i) >= 0 && static_cast<std::size_t>(heads(i)) < in.shape(2), "no such head");
    for (std::size_t token = 0; token < x.count; ++token)
        for (std::size_t i = 0; i < heads.size(); ++i)
            std::memcpy(out.data() + token * width + i * dim, x.at(token) + static_cast<std::size_t>(heads(i)) * dim,
                        dim * sizeof(float));
}

}  // namespace

void bind_pointwise(nb::module_& module) {
    using nb::arg;
    module.def("rms_norm", &rms_norm, arg("x"), arg("weight"), arg("eps"), arg("out").noconvert());
    module.def("l2_norm", &l2_norm, arg("x"), arg("eps"), arg("out").noconvert());
    module.def("silu_gate", &silu_gate, arg("x"), arg("gate"), arg("out").noconvert());
    module.def("sigmoid_gate", &sigmoid_gate, arg("x"), arg("gate"), arg("out").noconvert());
    module.def("add", &add, arg("x"), arg("y"), arg("out").noconvert());
    module.def("rope", &rope, arg("x"), arg("cos"), arg("sin"), arg("positions"), arg("out").noconvert());
    module.def("take_heads", &take_heads, arg("x"), arg("heads"), arg("out").noconvert());
}
