// Products with vectors: what all instruction sets share. Every output has one order of sums, the same for each of
// them: eight lanes run down the row, block after block, and are added up at its end; neither the number of columns nor
// the tile nor the row beside it changes it.

using Words = std::uint16_t __attribute__((vector_size(sizeof(Ints))));
using Counts = std::int32_t __attribute__((vector_size(sizeof(Ints))));

INLINE Ints bytes_of(char byte) { return for_each_row(_mm256_set1_epi8(byte)); }
INLINE Ints shift_left(Ints words, int bits) { return (Ints)((Words)words << bits); }
INLINE Ints shift_right(Ints words, int bits) { return (Ints)((Words)words >> bits); }
INLINE Ints subtract(Ints a, Ints b) { return (Ints)((Counts)a - (Counts)b); }
INLINE Ints times(Ints counts, int by) { return (Ints)((Counts)counts * by); }
INLINE Floats to_floats(Ints counts) { return __builtin_convertvector((Counts)counts, Floats); }

// Rows that lie side by side in a vector; the last one again where there are no more.
struct Rows {
    const std::uint8_t* at[rows_at_once];
    std::size_t count;
};

INLINE Rows rows_from(const RowRange& rows, std::size_t first) {
    Rows some;
    some.count = std::min(rows_at_once, rows.count - first);
    for (std::size_t i = 0; i < rows_at_once; ++i)
        some.at[i] = rows.data + (first + std::min(i, some.count - 1)) * rows.row_bytes;
    return some;
}

// Where each row goes on `offset` bytes further.
INLINE Rows behind(const Rows& rows, std::size_t offset) {
    Rows some;
    some.count = rows.count;
    for (std::size_t i = 0; i < rows_at_once; ++i) some.at[i] = rows.at[i] + offset;
    return some;
}

INLINE Ints load_rows(const Rows& rows, std::size_t offset) {
    return each_row([&](int i) __attribute__((always_inline)) { return load(rows.at[i] + offset); });
}

#include "linear_vector_256.inl"
#include "linear_vector_32.inl"
#include "linear_vector_floats.inl"
#include "linear_vector_pack.inl"
#include "linear_vector_rows.inl"

static Kernels::Multiply multiply(Type type) {
    switch (type) {
        case Type::F32: return multiply_floats<Type::F32>;
        case Type::F16: return multiply_floats<Type::F16>;
        case Type::BF16: return multiply_floats<Type::BF16>;
#define PASCAL_CASE(kind, type) \
    case Type::type: return multiply_quantised<kind<Type::type>>;
            PASCAL_256_TYPES(PASCAL_CASE, Kind256)
            PASCAL_32_TYPES(PASCAL_CASE, Kind32)
#undef PASCAL_CASE
    }
    return nullptr;
}
