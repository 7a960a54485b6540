// Number formats of weights and what a product needs to know about them.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

// Numbers as GGUF files give them.
enum class Type : int {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    BF16 = 30,
};

// What activations are when they meet weights of a type; see pascal_engine/backend/protocol.py.
enum class Format { floats, blocks_of_256, blocks_of_32 };

// Lists for tables of kernels: each(kind, type) for every type.
#define PASCAL_256_TYPES(each, kind)                                                                            \
    each(kind, Q2_K) each(kind, Q3_K) each(kind, Q4_K) each(kind, Q5_K) each(kind, Q6_K) each(kind, IQ2_XXS)    \
        each(kind, IQ2_XS) each(kind, IQ2_S) each(kind, IQ3_XXS) each(kind, IQ3_S) each(kind, IQ4_XS)
#define PASCAL_32_TYPES(each, kind) \
    each(kind, Q4_0) each(kind, Q4_1) each(kind, Q5_0) each(kind, Q5_1) each(kind, Q8_0) each(kind, IQ4_NL)

// Quantised weights and activations are handled 256 at a time, whatever the block of their format.
constexpr std::size_t group_size = 256;
// A product takes at most this many columns at once: their running sums fit the first-level cache.
constexpr std::size_t most_columns = 64;

// Uninitialised memory that begins on a cache line.
template <typename T> class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t size)
        : data_(static_cast<T*>(::operator new(size * sizeof(T) + 64, std::align_val_t(64)))) {}
    T* data() const { return data_.get(); }

  private:
    struct Free {
        void operator()(T* data) const { ::operator delete(data, std::align_val_t(64)); }
    };
    std::unique_ptr<T, Free> data_;
};

// Quantised activations of one column: 256 values and their sums over 16 or over 32 of them.
struct alignas(32) Group256 {
    std::int8_t q[256];
    std::int16_t sums[16];
};
struct alignas(32) Group32 {
    std::int8_t q[256];
    std::int32_t sums[8];
};

struct Kernels;

// Columns of activations in the formats asked for: [groups, columns], zero behind the last input; scales alike, eight
// for each group of 32-blocks.
struct Activations {
    const Kernels& kernels;  // those that packed them, and that alone know how they lie
    const float* x;          // [columns, inputs]
    std::size_t n_columns, n_inputs;
    Buffer<Group256> of_256;
    Buffer<float> scales_256;
    Buffer<Group32> of_32;
    Buffer<float> scales_32;
};

// A block's scale and what its values are multiplied by. A block whose largest magnitude is too small for the inverse
// to be finite counts as zero.
inline float scale_of(float most) { return most < 1e-30f ? 0.0f : most / 127.0f; }
// Scales of 32 values have 11 significant bits, half to even: those of a float16, of whatever size.
inline float short_scale_of(float most) {
    const float scale = scale_of(most);
    const auto bits = std::bit_cast<std::uint32_t>(scale);
    if (scale != scale) return scale;
    return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~std::uint32_t{0x1fff});
}
inline float inverse_scale(float most) { return most < 1e-30f ? 0.0f : 127.0f / most; }

// Which columns of the activations are multiplied, and where their products go: out[to[i] * stride + row].
struct Columns {
    const std::uint32_t* from;
    const std::uint32_t* to;
    std::size_t count;  // at most most_columns
    float* out;
    std::size_t stride;
};

// Rows of one type, one behind the other.
struct RowRange {
    const std::uint8_t* data;
    std::size_t row_bytes, count;
};

// What each instruction set offers.
struct Kernels {
    using Multiply = void (*)(const RowRange& rows, const Activations& x, const Columns& columns);
    Multiply (*multiply)(Type type);
    // Quantises one column.
    void (*pack_256)(Activations& x, std::size_t column);
    void (*pack_32)(Activations& x, std::size_t column);
};

extern const Kernels portable_kernels;
#if defined(__x86_64__)
extern const Kernels avx2_kernels, avx512_kernels;
#endif
