/// Approximate functions. The host's library is closer to the truth than the card is.
#include "emulator/ptx/ops/floats.h"

#include <cmath>

namespace cudamod::emulator::ptx::ops {
namespace {

template <class F, bool Z>
struct Flushing {
    CUDAMOD_INLINE static float apply(float a) { return out<Z>(F::apply(in<Z>(a))); }
};
template <class F, bool Z>
struct Flushing2 {
    CUDAMOD_INLINE static float apply(float a, float b) {
        return out<Z>(F::apply(in<Z>(a), in<Z>(b)));
    }
};

struct Rcp {
    CUDAMOD_INLINE static float apply(float a) { return 1.0f / a; }
};
struct Sqrt {
    CUDAMOD_INLINE static float apply(float a) { return __builtin_sqrtf(a); }
};
struct Rsqrt {
    CUDAMOD_INLINE static float apply(float a) {
        return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a)));
    }
};
struct Sin {
    CUDAMOD_INLINE static float apply(float a) { return __builtin_sinf(a); }
};
struct Cos {
    CUDAMOD_INLINE static float apply(float a) { return __builtin_cosf(a); }
};
struct Lg2 {
    CUDAMOD_INLINE static float apply(float a) { return __builtin_log2f(a); }
};
struct Ex2 {
    CUDAMOD_INLINE static float apply(float a) { return __builtin_exp2f(a); }
};
struct Tanh {
    CUDAMOD_INLINE static float apply(float a) { return __builtin_tanhf(a); }
};
struct DivFull {
    CUDAMOD_INLINE static float apply(float a, float b) { return a / b; }
};
/// Documented: a divisor beyond 2^126 gives zero.
struct DivApprox {
    CUDAMOD_INLINE static float apply(float a, float b) {
        const float magnitude = __builtin_fabsf(b);
        const bool large = magnitude > 0x1p126f && magnitude < __builtin_inff();
        return large ? a * 0.0f * b : a / b;
    }
};

/// 20 leading bits of mantissa, as the card computes them; denormals are zeros.
CUDAMOD_INLINE double coarse(double x) {
    return x != x ? std::bit_cast<double>(std::uint64_t{0x7fffffff00000000})
                  : std::bit_cast<double>(bits(x) & 0xffffffff00000000);
}
CUDAMOD_INLINE double flushed(double x) {
    return (bits(x) & 0x7ff0000000000000) == 0 ? std::bit_cast<double>(bits(x) & 0x8000000000000000)
                                               : x;
}
struct RcpDouble {
    CUDAMOD_INLINE static double apply(double a) {
        return flushed(coarse(1.0 / flushed(coarse(a))));
    }
};
struct RsqrtDouble {
    CUDAMOD_INLINE static double apply(double a) { return 1.0 / __builtin_sqrt(a); }
};
struct RsqrtDoubleFtz {
    CUDAMOD_INLINE static double apply(double a) {
        return coarse(1.0 / __builtin_sqrt(flushed(coarse(a))));
    }
};

/// The library's functions are called for the lanes that want them only.
template <class F>
void each(Warp& w, const Instruction& i, std::uint32_t mask) {
    float* d = w.at<float>(i.slots[0]);
    const float* a = w.at<float>(i.slots[1]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) != 0) d[l] = F::apply(a[l]);
    }
}

template <class F>
Handler called(const Form& form) {
    return form.has("ftz") ? &each<Flushing<F, true>> : Handler{&each<Flushing<F, false>>};
}
template <class F>
Handler vectorized(const Form& form) {
    return form.has("ftz") ? &unary<Flushing<F, true>, float, float>
                           : Handler{&unary<Flushing<F, false>, float, float>};
}
template <class F>
Handler quotient(const Form& form) {
    return form.has("ftz") ? &binary<Flushing2<F, true>, float, float>
                           : Handler{&binary<Flushing2<F, false>, float, float>};
}

} // namespace

Handler select_approximate(const Form& form) {
    if (form.type() == Type::F64) {
        if (form.is("rcp")) return &unary<RcpDouble, double, double>;
        return form.has("ftz") ? &unary<RsqrtDoubleFtz, double, double>
                               : Handler{&unary<RsqrtDouble, double, double>};
    }
    if (form.is("div"))
        return form.has("full") ? quotient<DivFull>(form) : quotient<DivApprox>(form);
    if (form.is("rcp")) return vectorized<Rcp>(form);
    if (form.is("sqrt")) return vectorized<Sqrt>(form);
    if (form.is("rsqrt")) return vectorized<Rsqrt>(form);
    if (form.is("sin")) return called<Sin>(form);
    if (form.is("cos")) return called<Cos>(form);
    if (form.is("lg2")) return called<Lg2>(form);
    if (form.is("ex2")) return called<Ex2>(form);
    return form.is("tanh") ? called<Tanh>(form) : nullptr;
}

} // namespace cudamod::emulator::ptx::ops
