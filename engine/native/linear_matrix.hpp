// A weight made of row-wise parts of any types, and products with it.
#pragma once
#include <vector>

#include "linear_types.hpp"

// Rows of one type of all experts: [experts, rows, bytes a row].
struct Part {
    Type type;
    std::size_t n_rows, row_bytes;
    const std::uint8_t* data;
};

struct Matrix {
    std::size_t n_experts = 0, n_outputs = 0, n_inputs = 0;
    std::vector<Part> parts;
};

// The fastest for products with this matrix that the instruction set in use allows, where `n_together` columns meet a
// row at once.
const Kernels& kernels(const Matrix& matrix, std::size_t n_together);

// x [columns, inputs] in every format that the matrix needs.
Activations pack(const Matrix& matrix, const float* x, std::size_t n_columns, std::size_t n_together);

// Columns of any number; see Columns.
struct ColumnList {
    const std::uint32_t* from;
    const std::uint32_t* to;
    std::size_t count;
};

// Rows `first` to `first + count` of one expert's matrix times the columns.
void multiply_rows(const Matrix& matrix, std::size_t expert, std::size_t first, std::size_t count, const Activations& x,
                   const ColumnList& columns, float* out);

// out [columns, outputs] = x [columns, inputs] times the transposed matrix.
void multiply(const Matrix& matrix, const float* x, std::size_t n_columns, float* out);

// How many rows are one piece of work.
std::size_t rows_a_piece(std::size_t n_columns);
