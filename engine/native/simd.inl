// Eight floats at a time, and functions on them. Included once for each instruction set, inside its namespace.

using V8 = float __attribute__((vector_size(32)));

constexpr std::size_t lanes = 8;

// Where no sum runs along a vector, its width changes no bit: there it is as wide as the processor has it.
#if defined(PASCAL_AVX512)
using Wide = float __attribute__((vector_size(64)));
#else
using Wide = V8;
#endif

template <typename V> constexpr std::size_t lanes_of = sizeof(V) / sizeof(float);
constexpr std::size_t wide = lanes_of<Wide>;

template <typename V = V8> INLINE V splat(float x) {
    if constexpr (sizeof(V) == sizeof(V8)) return V{x, x, x, x, x, x, x, x};
    else return V{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

template <typename V = V8> INLINE V load(const float* from) {
    V x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
}

// The first `count` floats, then zeros.
template <typename V = V8> INLINE V load(const float* from, std::size_t count) {
    if (count >= lanes_of<V>) return load<V>(from);
    V x{};
    for (std::size_t i = 0; i < count; ++i) x[i] = from[i];
    return x;
}

template <typename V> INLINE void store(float* to, V x) { __builtin_memcpy(to, &x, sizeof x); }

template <typename V> INLINE void store(float* to, V x, std::size_t count) {
    if (count >= lanes_of<V>) return store(to, x);
    for (std::size_t i = 0; i < count; ++i) to[i] = x[i];
}

// a * b + c, rounded once where the processor can.
template <typename V> INLINE V fma(V a, V b, V c) {
#if defined(PASCAL_AVX512)
    if constexpr (sizeof(V) == sizeof(Wide)) return _mm512_fmadd_ps(a, b, c);
    else
#endif
#if defined(PASCAL_AVX2)
        return _mm256_fmadd_ps(a, b, c);
#else
    return a * b + c;
#endif
}

template <typename V> INLINE V max(V a, V b) { return a > b ? a : b; }

// Sum and maximum of all lanes, always in this order.
INLINE float sum(V8 x) {
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

INLINE float max(V8 x) {
    float most = x[0];
    for (std::size_t i = 1; i < lanes; ++i) most = x[i] > most ? x[i] : most;
    return most;
}

// exp within 2 units in the last place: 2^n times a polynomial on half a power of two to either side (coefficients as
// in Cephes). Subnormal results are rounded twice.
template <typename V> INLINE V exp(V x) {
    using Integers = decltype(x > x);
    x = x < splat<V>(-104.0f) ? splat<V>(-104.0f) : x;
    x = x > splat<V>(89.0f) ? splat<V>(89.0f) : x;
    const V magic = splat<V>(12582912.0f);  // its last bit counts ones
    const V shifted = fma(x, splat<V>(1.44269504f), magic);
    const V n = shifted - magic;
    V r = fma(n, splat<V>(-0.693359375f), x);
    r = fma(n, splat<V>(2.12194440e-4f), r);
    V p = splat<V>(1.9875691500e-4f);
    p = fma(p, r, splat<V>(1.3981999507e-3f));
    p = fma(p, r, splat<V>(8.3334519073e-3f));
    p = fma(p, r, splat<V>(4.1665795894e-2f));
    p = fma(p, r, splat<V>(1.6666665459e-1f));
    p = fma(p, r, splat<V>(5.0000001201e-1f));
    p = fma(p * r, r, r) + splat<V>(1.0f);
    // Half of the power at a time, for results below the normal range and above.
    const Integers power = reinterpret_cast<Integers>(shifted) - reinterpret_cast<Integers>(magic), half = power >> 1;
    const V low = reinterpret_cast<V>((half + 127) << 23), high = reinterpret_cast<V>((power - half + 127) << 23);
    return p * low * high;
}

template <typename V> INLINE V sigmoid(V x) { return splat<V>(1.0f) / (splat<V>(1.0f) + exp(-x)); }

// log(1 + x) for 0 <= x <= 1 within 3 units in the last place: twice the series of the inverse hyperbolic tangent.
template <typename V> INLINE V log_one_plus(V x) {
    const V s = x / (x + splat<V>(2.0f)), t = s * s;
    V p = splat<V>(1.0f / 17);
    for (int n = 15; n >= 3; n -= 2) p = fma(p, t, splat<V>(1.0f / static_cast<float>(n)));
    return splat<V>(2.0f) * fma(p * t, s, s);
}

template <typename V> INLINE V softplus(V x) {
    const V zero{};
    return max(x, zero) + log_one_plus(exp(x > zero ? -x : x));
}

INLINE float square_root(float x) { return __builtin_sqrtf(x); }
