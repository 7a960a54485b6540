// Causal attention over pages of keys and values. A context is split at fixed positions; within a split pages follow
// in order, and the splits of a query are joined in order: its bits are its own, in decode and prefill alike.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops.hpp"
#include "ops_attention.hpp"

#define PASCAL_KERNELS "attention_kernels.inl"
#include "targets.inl"

namespace {

constexpr std::size_t split_pages = 16;

// Keys or values [rows, pages, kv_heads, page_keys, ...] in one of the formats.
struct Pool {
    using Array = nb::ndarray<nb::c_contig, nb::device::cpu>;

    KvKind kind;
    std::uint8_t* data;
    std::size_t n_rows, n_pages, n_heads, row_bytes;

    Pool(const Array& array, std::size_t head_dim) : data(static_cast<std::uint8_t*>(array.data())) {
        require(array.ndim() == 5 && array.shape(3) == page_keys, "a pool is [rows, pages, kv_heads, 64, ...]");
        n_rows = array.shape(0), n_pages = array.shape(1), n_heads = array.shape(2);
        row_bytes = array.shape(4) * array.itemsize();
        kind = kind_of(array, head_dim);
    }

    std::uint8_t* at(std::size_t row, std::size_t head, std::size_t position) const {
        const std::size_t page = (row * n_pages + position / page_keys) * n_heads + head;
        return data + (page * page_keys + position % page_keys) * row_bytes;
    }

    // The first `count` rows of a page as floats, `width` apart; into `scratch` unless they lie so already.
    const float* page(std::size_t row, std::size_t head, std::size_t first, std::size_t count, std::size_t head_dim,
                      std::size_t width, std::vector<float>& scratch) const {
        const std::uint8_t* from = at(row, head, first);
        if (kind == KvKind::f32 && width == head_dim) return reinterpret_cast<const float*>(from);
        scratch.resize(page_keys * width);
        for (std::size_t key = 0; key < count; ++key) {
            PASCAL_DISPATCH(decode, kind, from + key * row_bytes, head_dim, scratch.data() + key * width);
            std::fill_n(scratch.data() + key * width + head_dim, width - head_dim, 0.0f);
        }
        return scratch.data();
    }

  private:
    static KvKind kind_of(const Array& array, std::size_t head_dim) {
        const std::size_t n_blocks = head_dim / kv_block, length = array.shape(4);
        if (array.dtype() == nb::dtype<float>() && length == head_dim) return KvKind::f32;
        const nb::dlpack::dtype half{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
        if (array.dtype() == half && length == head_dim) return KvKind::f16;
        require(array.dtype() == nb::dtype<std::uint8_t>() && head_dim % kv_block == 0, "a pool's format is unknown");
        require(length == 34 * n_blocks || length == 18 * n_blocks, "a pool does not fit the heads");
        return length == 34 * n_blocks ? KvKind::q8_0 : KvKind::q4_0;
    }
};

struct Attention {
    Tokens q, k, v;
    Pool keys, values;
    Sequences sequences;
    const std::int64_t* positions;
    std::size_t n_heads, head_dim;
    float* out;
    std::size_t n_kv = keys.n_heads, group = n_heads / n_kv;
    std::size_t width = (head_dim + 7) / 8 * 8;  // of heads filled up to whole vectors
    std::size_t stride = width + 2;              // of partial results
    std::size_t n_splits = 1;                    // of the longest sequence
    std::vector<float> partials{};               // [tokens, heads, splits, stride]

    std::size_t position(std::size_t token) const { return static_cast<std::size_t>(positions[token]); }
    std::size_t row(std::size_t i) const { return static_cast<std::size_t>(sequences.rows[i]); }
    static std::size_t splits_of(std::size_t position) { return position / (split_pages * page_keys) + 1; }

    float* partial(std::size_t token, std::size_t head, std::size_t split) {
        return partials.data() + ((token * n_heads + head) * n_splits + split) * stride;
    }

    void run() {
        for (std::size_t i = 0; i < sequences.count; ++i) store(i);
        for (std::size_t token = 0; token < q.count; ++token)
            n_splits = std::max(n_splits, splits_of(position(token)));
        partials.resize(q.count * n_heads * n_splits * stride);
        parallel_for(sequences.count * n_kv * n_splits, [&](std::size_t piece) {
            attend(piece / n_splits / n_kv, piece / n_splits % n_kv, piece % n_splits);
        });
        parallel_ranges(q.count * n_heads, 64, [&](std::size_t first, std::size_t stop) {
            for (std::size_t at = first; at < stop; ++at) {
                const std::size_t token = at / n_heads;
                PASCAL_DISPATCH(join, partial(token, at % n_heads, 0), splits_of(position(token)), stride, width,
                                head_dim, out + at * head_dim);
            }
        });
    }

    // Writes a sequence's keys and values into its row.
    void store(std::size_t i) const {
        for (std::size_t token = sequences.first(i); token < sequences.first(i) + sequences.length(i); ++token)
            for (std::size_t head = 0; head < n_kv; ++head) {
                const std::size_t at = head * head_dim;
                PASCAL_DISPATCH(encode, keys.kind, k.at(token) + at, head_dim, keys.at(row(i), head, position(token)));
                PASCAL_DISPATCH(encode, values.kind, v.at(token) + at, head_dim,
                                values.at(row(i), head, position(token)));
            }
    }

    // All queries of sequence i that share a head of keys, over the pages of a split.
    void attend(std::size_t i, std::size_t kv_head, std::size_t split) {
        static thread_local std::vector<float> key_scratch, value_scratch, query;
        const std::size_t begin = sequences.first(i), end = begin + sequences.length(i);
        if (begin == end) return;
        std::size_t last = 0;
        for (std::size_t token = begin; token < end; ++token) {
            last = std::max(last, position(token));
            for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
                float* to = partial(token, head, split);
                std::fill_n(to, stride, 0.0f);
                *to = -std::numeric_limits<float>::infinity();
            }
        }
        query.assign(width, 0.0f);
        const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
        const std::size_t stop = std::min(last + 1, (split + 1) * split_pages * page_keys);
        for (std::size_t first = split * split_pages * page_keys; first < stop; first += page_keys) {
            const std::size_t held = std::min(page_keys, last + 1 - first);
            const float* k_page = keys.page(row(i), kv_head, first, held, head_dim, width, key_scratch);
            const float* v_page = values.page(row(i), kv_head, first, held, head_dim, width, value_scratch);
            for (std::size_t token = begin; token < end; ++token) {
                if (position(token) < first) continue;
                const std::size_t seen = std::min(page_keys, position(token) + 1 - first);
                for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
                    std::copy_n(q.at(token) + head * head_dim, head_dim, query.data());
                    float* to = partial(token, head, split);
                    PASCAL_DISPATCH(attend_page, query.data(), k_page, v_page, width, seen, scale,
                                    Partial{to, to + 1, to + 2});
                }
            }
        }
    }
};

void attention(const In& q_in, const In& k_in, const In& v_in, const Pool::Array& keys, const Pool::Array& values,
               const Indices& rows, const Indices& offsets, const Indices& positions, const Out& out) {
    require(q_in.ndim() == 4 && k_in.ndim() == 4 && v_in.ndim() == 4, "q, k and v are arrays [n, T, heads, head_dim]");
    const std::size_t n_heads = q_in.shape(2), head_dim = q_in.shape(3), n_kv = k_in.shape(2);
    const Pool key_pool(keys, head_dim), value_pool(values, head_dim);
    Attention work{Tokens(q_in), Tokens(k_in), Tokens(v_in), key_pool, value_pool,
                   Sequences(rows, offsets, std::min(key_pool.n_rows, value_pool.n_rows), q_in.shape(0) * q_in.shape(1)),
                   positions.data(), n_heads, head_dim, out.data()};
    const std::size_t count = work.q.count, n_keys = std::min(key_pool.n_pages, value_pool.n_pages) * page_keys;
    require(n_kv == key_pool.n_heads && n_kv == value_pool.n_heads && n_kv > 0 && n_heads % n_kv == 0 &&
                work.k.width == n_kv * head_dim && work.v.width == work.k.width && work.k.count == count &&
                work.v.count == count && positions.size() == count && out.size() == count * n_heads * head_dim,
            "q, k, v, pools and out do not fit");
    for (std::size_t i = 0; i < count; ++i)
        require(positions(i) >= 0 && static_cast<std::size_t>(positions(i)) < n_keys, "the pool has no such position");
    nb::gil_scoped_release release;
    work.run();
}

}  // namespace

void bind_attention(nb::module_& module) {
    using nb::arg;
    module.def("attention", &attention, arg("q"), arg("k"), arg("v"), arg("keys").noconvert(),
               arg("values").noconvert(), arg("rows"), arg("offsets"), arg("positions"), arg("out").noconvert());
}
