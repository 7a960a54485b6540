// Products with quantised weights, as Python sees them; see pascal_engine/backend/cpu/linear.py.
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind.hpp"
#include "linear_decode.hpp"
#include "linear_experts.hpp"
#include "linear_tables.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace {

using Bytes3 = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Tokens = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// A matrix that keeps the arrays alive on which it is a view.
struct OwningMatrix : Matrix {
    std::vector<Bytes3> arrays;

    OwningMatrix(std::size_t inputs, const std::vector<int>& types, std::vector<Bytes3> data)
        : arrays(std::move(data)) {
        require(!arrays.empty() && types.size() == arrays.size(), "a matrix needs parts, and a type for each");
        n_inputs = inputs;
        n_experts = arrays[0].shape(0);
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            require(arrays[i].shape(0) == n_experts, "all parts must hold the same number of experts");
            const Type type{types[i]};
            require(portable_kernels.multiply(type) != nullptr, "unknown type of weights");
            require(arrays[i].shape(2) == row_bytes(type, n_inputs), "the rows do not hold the inputs");
            parts.push_back({type, arrays[i].shape(1), arrays[i].shape(2), arrays[i].data()});
            n_outputs += arrays[i].shape(1);
        }
    }
};

void linear(const Floats& x, const OwningMatrix& matrix, const Out& out) {
    require(x.shape(1) == matrix.n_inputs && matrix.n_experts == 1, "x does not fit the matrix");
    require(out.shape(0) == x.shape(0) && out.shape(1) == matrix.n_outputs, "out does not fit x and the matrix");
    nb::gil_scoped_release release;
    multiply(matrix, x.data(), x.shape(0), out.data());
}

void embed(const OwningMatrix& table, const Tokens& tokens, const Out& out) {
    require(out.shape(0) == tokens.shape(0) && out.shape(1) == table.n_inputs, "out does not fit tokens and the table");
    for (std::size_t i = 0; i < tokens.shape(0); ++i)
        require(tokens(i) >= 0 && static_cast<std::size_t>(tokens(i)) < table.n_outputs, "no such token");
    nb::gil_scoped_release release;
    parallel_for(tokens.shape(0), [&](std::size_t i) {
        std::size_t row = static_cast<std::size_t>(tokens(i));
        auto part = table.parts.begin();
        for (; row >= part->n_rows; ++part) row -= part->n_rows;
        decode_row(part->type, part->data + row * part->row_bytes, table.n_inputs, out.data() + i * table.n_inputs);
    });
}

void experts(const Floats& x, const OwningMatrix& router, const OwningMatrix& gate_up, const OwningMatrix& down,
             std::size_t n_used, const Out& out) {
    const std::size_t n_experts = router.n_outputs;
    require(n_used >= 1 && n_used <= n_experts, "more experts are used than there are");
    require(gate_up.n_experts == n_experts && down.n_experts == n_experts && router.n_experts == 1,
            "the router and the experts do not fit");
    require(x.shape(1) == router.n_inputs && x.shape(1) == gate_up.n_inputs && x.shape(1) == down.n_outputs &&
                gate_up.n_outputs == 2 * down.n_inputs,
            "x and the experts do not fit");
    require(out.shape(0) == x.shape(0) && out.shape(1) == x.shape(1), "out does not fit x");
    nb::gil_scoped_release release;
    mixture(x.data(), x.shape(0), router, gate_up, down, n_used, out.data());
}

template <typename T> void fill(T& table, const Table& bytes) {
    require(bytes.size() == sizeof table, "a table is of another size");
    std::memcpy(&table, bytes.data(), sizeof table);
}

void set_tables(const std::vector<Table>& tables) {
    require(tables.size() == 7, "seven tables are needed");
    fill(iq_tables.iq2_xxs, tables[0]);
    fill(iq_tables.iq2_xs, tables[1]);
    fill(iq_tables.iq2_s, tables[2]);
    fill(iq_tables.iq3_xxs, tables[3]);
    fill(iq_tables.iq3_s, tables[4]);
    fill(iq_tables.signs, tables[5]);
    fill(iq_tables.levels, tables[6]);
    fill_byte_masks(iq_tables);
}

}  // namespace

void bind_linear(nb::module_& module) {
    nb::class_<OwningMatrix>(module, "Matrix")
        .def(nb::init<std::size_t, const std::vector<int>&, std::vector<Bytes3>>(), nb::arg("n_inputs"),
             nb::arg("types"), nb::arg("parts"))
        .def_ro("n_inputs", &OwningMatrix::n_inputs)
        .def_ro("n_outputs", &OwningMatrix::n_outputs);
    module.def("linear", &linear, nb::arg("x"), nb::arg("matrix"), nb::arg("out"));
    module.def("embed", &embed, nb::arg("table"), nb::arg("tokens"), nb::arg("out"));
    module.def("experts", &experts, nb::arg("x"), nb::arg("router"), nb::arg("gate_up"), nb::arg("down"),
               nb::arg("n_used"), nb::arg("out"));
    module.def("set_tables", &set_tables, nb::arg("tables"));
}
