// Eight floats at a time, and functions on them. Included once for each instruction set, inside its namespace.

using V8 = float __attribute__((vector_size(32)));
using I8 = std::int32_t __attribute__((vector_size(32)));

constexpr std::size_t lanes = 8;

INLINE V8 splat(float x) { return V8{x, x, x, x, x, x, x, x}; }

INLINE V8 load(const float* from) {
    V8 x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
}

// The first `count` floats, then zeros.
INLINE V8 load(const float* from, std::size_t count) {
    if (count >= lanes) return load(from);
    V8 x{};
    for (std::size_t i = 0; i < count; ++i) x[i] = from[i];
    return x;
}

INLINE void store(float* to, V8 x) { __builtin_memcpy(to, &x, sizeof x); }

INLINE void store(float* to, V8 x, std::size_t count) {
    if (count >= lanes) return store(to, x);
    for (std::size_t i = 0; i < count; ++i) to[i] = x[i];
}

// a * b + c, rounded once where the processor can.
INLINE V8 fma(V8 a, V8 b, V8 c) {
#if defined(PASCAL_AVX2)
    return _mm256_fmadd_ps(a, b, c);
#else
    return a * b + c;
#endif
}

INLINE V8 max(V8 a, V8 b) { return a > b ? a : b; }

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
INLINE V8 exp(V8 x) {
    x = x < splat(-104.0f) ? splat(-104.0f) : x;
    x = x > splat(89.0f) ? splat(89.0f) : x;
    const V8 magic = splat(12582912.0f);  // its last bit counts ones
    const V8 shifted = fma(x, splat(1.44269504f), magic);
    const V8 n = shifted - magic;
    V8 r = fma(n, splat(-0.693359375f), x);
    r = fma(n, splat(2.12194440e-4f), r);
    V8 p = splat(1.9875691500e-4f);
    p = fma(p, r, splat(1.3981999507e-3f));
    p = fma(p, r, splat(8.3334519073e-3f));
    p = fma(p, r, splat(4.1665795894e-2f));
    p = fma(p, r, splat(1.6666665459e-1f));
    p = fma(p, r, splat(5.0000001201e-1f));
    p = fma(p * r, r, r) + splat(1.0f);
    // Half of the power at a time, for results below the normal range and above.
    const I8 power = reinterpret_cast<I8>(shifted) - reinterpret_cast<I8>(magic), half = power >> 1;
    const V8 low = reinterpret_cast<V8>((half + 127) << 23), high = reinterpret_cast<V8>((power - half + 127) << 23);
    return p * low * high;
}

INLINE V8 sigmoid(V8 x) { return splat(1.0f) / (splat(1.0f) + exp(-x)); }

// log(1 + x) for 0 <= x <= 1 within 3 units in the last place: twice the series of the inverse hyperbolic tangent.
INLINE V8 log_one_plus(V8 x) {
    const V8 s = x / (x + splat(2.0f)), t = s * s;
    V8 p = splat(1.0f / 17);
    for (int n = 15; n >= 3; n -= 2) p = fma(p, t, splat(1.0f / static_cast<float>(n)));
    return splat(2.0f) * fma(p * t, s, s);
}

INLINE V8 softplus(V8 x) {
    const V8 zero{};
    return max(x, zero) + log_one_plus(exp(x > zero ? -x : x));
}

INLINE float square_root(float x) { return __builtin_sqrtf(x); }
