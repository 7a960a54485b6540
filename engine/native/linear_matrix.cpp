#include "linear_matrix.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "instructions.hpp"
#include "threads.hpp"

namespace {

Format format_of(Type type) {
    switch (type) {
        case Type::F32:
        case Type::F16:
        case Type::BF16: return Format::floats;
#define PASCAL_CASE(format, type) case Type::type:
            PASCAL_256_TYPES(PASCAL_CASE, 0) return Format::blocks_of_256;
            PASCAL_32_TYPES(PASCAL_CASE, 0) return Format::blocks_of_32;
#undef PASCAL_CASE
    }
    return Format::floats;
}

bool needs(const Matrix& matrix, Format format) {
    return std::any_of(matrix.parts.begin(), matrix.parts.end(),
                       [format](const Part& part) { return format_of(part.type) == format; });
}

#if defined(__x86_64__)
// From how many columns on AVX-512 is faster than AVX2, as measured (docs/log/engine.md): laying out the weights for it
// costs more than a single column gains, but for these types. Both have the same bits.
std::size_t least_for_avx512(Type type) {
    switch (type) {
        case Type::F16:
        case Type::Q4_K:
        case Type::Q5_K:
        case Type::Q6_K: return 1;
        case Type::Q2_K: return 8;
        case Type::BF16: return std::numeric_limits<std::size_t>::max();
        default: return 2;
    }
}
#endif

}  // namespace

const Kernels& kernels([[maybe_unused]] const Matrix& matrix, [[maybe_unused]] std::size_t n_together) {
#if defined(__x86_64__)
    const auto pays = [n_together](const Part& part) { return n_together >= least_for_avx512(part.type); };
    if (instructions == Instructions::avx512 && std::all_of(matrix.parts.begin(), matrix.parts.end(), pays))
        return avx512_kernels;
    if (instructions != Instructions::portable) return avx2_kernels;
#endif
    return portable_kernels;
}

Activations pack(const Matrix& matrix, const float* x, std::size_t n_columns, std::size_t n_together) {
    const std::size_t n_groups = (matrix.n_inputs + group_size - 1) / group_size, size = n_groups * n_columns;
    const bool of_256 = needs(matrix, Format::blocks_of_256), of_32 = needs(matrix, Format::blocks_of_32);
    Activations packed{kernels(matrix, n_together), x, n_columns, matrix.n_inputs, {}, {}, {}, {}};
    if (of_256) packed.of_256 = Buffer<Group256>(size), packed.scales_256 = Buffer<float>(size);
    if (of_32) packed.of_32 = Buffer<Group32>(size), packed.scales_32 = Buffer<float>(size * 8);
    if (of_256 || of_32)
        parallel_for(n_columns, [&](std::size_t column) {
            if (of_256) packed.kernels.pack_256(packed, column);
            if (of_32) packed.kernels.pack_32(packed, column);
        });
    return packed;
}

void multiply_rows(const Matrix& matrix, std::size_t expert, std::size_t first, std::size_t count, const Activations& x,
                   const ColumnList& columns, float* out) {
    std::size_t begin = 0;
    for (const Part& part : matrix.parts) {
        const std::size_t from = std::max(first, begin), to = std::min(first + count, begin + part.n_rows);
        if (from < to) {
            const std::uint8_t* data = part.data + (expert * part.n_rows + from - begin) * part.row_bytes;
            const RowRange rows{data, part.row_bytes, to - from};
            const auto kernel = x.kernels.multiply(part.type);
            for (std::size_t at = 0; at < columns.count; at += most_columns)
                kernel(rows, x,
                       {columns.from + at, columns.to + at, std::min(most_columns, columns.count - at), out + from,
                        matrix.n_outputs});
        }
        begin += part.n_rows;
    }
}

std::size_t rows_a_piece(std::size_t n_columns) { return n_columns <= 4 ? 32 : 16; }

void multiply(const Matrix& matrix, const float* x, std::size_t n_columns, float* out) {
    const Activations packed = pack(matrix, x, n_columns, n_columns);
    std::vector<std::uint32_t> all(n_columns);
    std::iota(all.begin(), all.end(), 0u);
    const std::size_t piece = rows_a_piece(n_columns);
    parallel_for((matrix.n_outputs + piece - 1) / piece, [&](std::size_t i) {
        const std::size_t first = i * piece;
        multiply_rows(matrix, 0, first, std::min(piece, matrix.n_outputs - first), packed,
                      {all.data(), all.data(), n_columns}, out);
    });
}
