/// IEEE single and double precision.
#include "emulator/ptx/ops/floats.h"

namespace cudamod::emulator::ptx::ops {
namespace {

/// a * b + c in single precision with one rounding, in the current rounding mode.
CUDAMOD_INLINE float fused(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
CUDAMOD_INLINE double fused(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}

/// The same, to nearest, without an FMA unit: the exact product and a sum rounded to odd in double
/// precision round to the right single.
CUDAMOD_INLINE float fused_nearest(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return fused(a, b, c);
#else
    return static_cast<float>(
        fused_to_odd(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c)));
#endif
}

template <class T, bool Ftz, bool Sat>
struct Shape {
    CUDAMOD_INLINE static T in(T x) {
        if constexpr (sizeof(T) == 4) return ops::in<Ftz>(x);
        return x;
    }
    CUDAMOD_INLINE static T out(T x) {
        if constexpr (sizeof(T) == 4) return ops::out<Ftz, Sat>(x);
        return x;
    }
    /// The result of two operands.
    CUDAMOD_INLINE static T two(T r, T a, T b) {
        if constexpr (sizeof(T) == 8) return handed_on(r, a, b);
        return out(r);
    }
};

template <class T, bool Z, bool S>
struct Add {
    using H = Shape<T, Z, S>;
    CUDAMOD_INLINE static T apply(T a, T b) { return H::two(H::in(a) + H::in(b), a, b); }
};
template <class T, bool Z, bool S>
struct Sub {
    using H = Shape<T, Z, S>;
    CUDAMOD_INLINE static T apply(T a, T b) { return H::two(H::in(a) - H::in(b), a, b); }
};
template <class T, bool Z, bool S>
struct Mul {
    using H = Shape<T, Z, S>;
    CUDAMOD_INLINE static T apply(T a, T b) { return H::two(H::in(a) * H::in(b), a, b); }
};
template <class T, bool Z, bool S>
struct Div {
    using H = Shape<T, Z, S>;
    // A quotient asks the dividend first.
    CUDAMOD_INLINE static T apply(T a, T b) { return H::two(H::in(a) / H::in(b), b, a); }
};
template <class T, bool Z, bool S>
struct Rcp {
    using H = Shape<T, Z, S>;
    CUDAMOD_INLINE static T apply(T a) { return H::out(T{1} / H::in(a)); }
};
template <class T, bool Z, bool S>
struct Sqrt {
    using H = Shape<T, Z, S>;
    CUDAMOD_INLINE static T apply(T a) {
        if constexpr (sizeof(T) == 4) return H::out(__builtin_sqrtf(H::in(a)));
        return __builtin_sqrt(a);
    }
};
template <class T, bool Z, bool S>
struct Fma {
    using H = Shape<T, Z, S>;
    CUDAMOD_INLINE static T apply(T a, T b, T c) {
        const T r = fused(H::in(a), H::in(b), H::in(c));
        if constexpr (sizeof(T) == 8) return handed_on(handed_on(r, a, c), b, b);
        return H::out(r);
    }
};
template <bool Z, bool S>
struct FmaNearest {
    using H = Shape<float, Z, S>;
    CUDAMOD_INLINE static float apply(float a, float b, float c) {
        return H::out(fused_nearest(H::in(a), H::in(b), H::in(c)));
    }
};

template <class T, bool Z>
struct Abs {
    CUDAMOD_INLINE static T apply(T a) {
        if constexpr (sizeof(T) == 4) return Shape<T, Z, false>::out(__builtin_fabsf(a));
        return a != a ? quieted(a) : __builtin_fabs(a);
    }
};
template <class T, bool Z>
struct Neg {
    CUDAMOD_INLINE static T apply(T a) {
        if constexpr (sizeof(T) == 4) return Shape<T, Z, false>::out(-a);
        return a != a ? quieted(a) : -a;
    }
};

template <class T>
using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

CUDAMOD_INLINE float both_nan(float) {
    return single(kCanonicalNan);
}
CUDAMOD_INLINE double both_nan(double b) {
    return quieted(b);
}

/// minNum and maxNum with -0 below +0; one NaN loses, or wins where `Nan`.
template <class T, bool Z, bool Larger, bool Nan>
struct Extreme {
    using H = Shape<T, Z, false>;
    CUDAMOD_INLINE static T apply(T x, T y) {
        const T a = H::in(x), b = H::in(y);
        const Word<T> p = bits(a), q = bits(b);
        const T zero =
            std::bit_cast<T>(Larger ? p & q : p | q); // of equal values only zeros differ
        T r = a == b ? zero : (Larger ? a > b : a < b) ? a : b;
        if (Nan) {
            r = a != a || b != b ? both_nan(b) : r;
        } else {
            r = a != a ? b : r;
            r = b != b ? a : r;
            r = a != a && b != b ? both_nan(b) : r;
        }
        return r;
    }
};
template <bool Z, bool Larger, bool Nan>
struct SignedExtreme {
    CUDAMOD_INLINE static float apply(float a, float b) {
        const float r =
            Extreme<float, Z, Larger, Nan>::apply(__builtin_fabsf(a), __builtin_fabsf(b));
        const std::uint32_t sign = (bits(a) ^ bits(b)) & 0x80000000;
        return r != r ? r : single((bits(r) & 0x7fffffff) | sign);
    }
};
template <class T>
struct Copysign {
    CUDAMOD_INLINE static T apply(T a, T b) {
        constexpr Word<T> kSign = Word<T>{1} << (8 * sizeof(T) - 1);
        return std::bit_cast<T>((bits(b) & ~kSign) | (bits(a) & kSign));
    }
};

enum class Class { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

template <class T, Class C>
struct Is {
    CUDAMOD_INLINE static bool apply(T x, T) {
        constexpr Word<T> kInfinity =
            sizeof(T) == 4 ? Word<T>{0x7f800000} : static_cast<Word<T>>(0x7ff0000000000000);
        constexpr Word<T> kSmallestNormal = kInfinity & (Word<T>{0} - kInfinity);
        const Word<T> magnitude = bits(x) & (~Word<T>{0} >> 1);
        switch (C) {
        case Class::Finite:
            return magnitude < kInfinity;
        case Class::Infinite:
            return magnitude == kInfinity;
        case Class::Number:
            return magnitude <= kInfinity;
        case Class::NotANumber:
            return magnitude > kInfinity;
        case Class::Normal:
            return magnitude == 0 || (magnitude < kInfinity && magnitude >= kSmallestNormal);
        case Class::Subnormal:
            return magnitude != 0 && magnitude < kSmallestNormal;
        }
        return false;
    }
};

template <class T, Class C>
void test(Warp& w, const Instruction& i, std::uint32_t mask) {
    const T* a = w.at<T>(i.slots[1]);
    set_predicate(w, i.slots[0], lanes_where<Is<T, C>>(a, a), mask);
}

template <class T>
Handler test_of(const Form& form) {
    if (form.has("finite")) return &test<T, Class::Finite>;
    if (form.has("infinite")) return &test<T, Class::Infinite>;
    if (form.has("number")) return &test<T, Class::Number>;
    if (form.has("notanumber")) return &test<T, Class::NotANumber>;
    return form.has("normal") ? &test<T, Class::Normal> : Handler{&test<T, Class::Subnormal>};
}

/// Handlers for the four roundings and the flags, of an operation with one, two or three operands.
template <class T, bool Z, bool S>
Handler arithmetic(const Form& form) {
    const Rounding rounding = rounding_of(form);
    if (form.is("add")) return with_rounding<&binary<Add<T, Z, S>, T, T>>(rounding);
    if (form.is("sub")) return with_rounding<&binary<Sub<T, Z, S>, T, T>>(rounding);
    if (form.is("mul")) return with_rounding<&binary<Mul<T, Z, S>, T, T>>(rounding);
    if (form.is("div")) return with_rounding<&binary<Div<T, Z, S>, T, T>>(rounding);
    if (form.is("rcp")) return with_rounding<&unary<Rcp<T, Z, S>, T, T>>(rounding);
    if (form.is("sqrt")) return with_rounding<&unary<Sqrt<T, Z, S>, T, T>>(rounding);
    if constexpr (sizeof(T) == 4) {
        if (rounding == Rounding::Nearest) return &ternary<FmaNearest<Z, S>, T, T>;
    }
    return with_rounding<&ternary<Fma<T, Z, S>, T, T>>(rounding);
}

template <bool Z, bool Larger>
Handler extreme(const Form& form) {
    if (form.has("xorsign")) {
        return form.has("NaN") ? &binary<SignedExtreme<Z, Larger, true>, float, float>
                               : Handler{&binary<SignedExtreme<Z, Larger, false>, float, float>};
    }
    return form.has("NaN") ? &binary<Extreme<float, Z, Larger, true>, float, float>
                           : Handler{&binary<Extreme<float, Z, Larger, false>, float, float>};
}

template <bool Z>
Handler single_precision(const Form& form) {
    if (form.is("abs")) return &unary<Abs<float, Z>, float, float>;
    if (form.is("neg")) return &unary<Neg<float, Z>, float, float>;
    if (form.is("min")) return extreme<Z, false>(form);
    if (form.is("max")) return extreme<Z, true>(form);
    return form.has("sat") ? arithmetic<float, Z, true>(form) : arithmetic<float, Z, false>(form);
}

} // namespace

Handler select_float(const Form& form) {
    const bool is_double = form.type() == Type::F64;
    if (form.is("testp")) return is_double ? test_of<double>(form) : test_of<float>(form);
    if (form.is("copysign")) {
        return is_double ? &binary<Copysign<double>, double, double>
                         : Handler{&binary<Copysign<float>, float, float>};
    }
    if (!is_double)
        return form.has("ftz") ? single_precision<true>(form) : single_precision<false>(form);
    if (form.is("abs")) return &unary<Abs<double, false>, double, double>;
    if (form.is("neg")) return &unary<Neg<double, false>, double, double>;
    if (form.is("min")) return &binary<Extreme<double, false, false, false>, double, double>;
    if (form.is("max")) return &binary<Extreme<double, false, true, false>, double, double>;
    return arithmetic<double, false, false>(form);
}

} // namespace cudamod::emulator::ptx::ops
