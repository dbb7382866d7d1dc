/// cvt between integers, single and double precision, and the choice among all of cvt's forms.
#include "emulator/ptx/ops/convert.h"

#include <limits>
#include <type_traits>

namespace cudamod::emulator::ptx::ops {
namespace {

template <class F>
Handler for_number(Type type, F make) {
    switch (type) {
    case Type::U8:
        return make.template operator()<std::uint8_t>();
    case Type::S8:
        return make.template operator()<std::int8_t>();
    case Type::F32:
        return make.template operator()<float>();
    case Type::F64:
        return make.template operator()<double>();
    default:
        return for_integer(type, make);
    }
}

template <class D, class S>
struct Resize {
    CUDAMOD_INLINE static D apply(S a) { return static_cast<D>(a); }
};

template <class D, class S>
struct Clamp {
    CUDAMOD_INLINE static D apply(S a) {
        using Limits = std::numeric_limits<D>;
        if constexpr (std::is_signed_v<S>) {
            if constexpr (std::is_signed_v<D>) {
                if (std::int64_t{a} < std::int64_t{Limits::min()}) return Limits::min();
                if (std::int64_t{a} > std::int64_t{Limits::max()}) return Limits::max();
            } else {
                if (a < 0) return 0;
                if (static_cast<std::uint64_t>(a) > std::uint64_t{Limits::max()})
                    return Limits::max();
            }
        } else {
            if (std::uint64_t{a} > static_cast<std::uint64_t>(Limits::max())) return Limits::max();
        }
        return static_cast<D>(a);
    }
};

template <class D>
CUDAMOD_INLINE D saturated(D x) {
    x = x > D{0} ? x : D{0};
    return x < D{1} ? x : D{1};
}

template <class D, class S, bool Sat>
struct FromInteger {
    CUDAMOD_INLINE static D apply(S a) {
        const D r = static_cast<D>(a);
        return Sat ? saturated(r) : r;
    }
};

// In the current rounding mode.
CUDAMOD_INLINE double to_integral(double x) {
    return __builtin_nearbyint(x);
}
CUDAMOD_INLINE float to_integral(float x) {
    return __builtin_nearbyintf(x);
}

/// Values out of range give the nearest one; NaN gives 0, from or to 64 bits the sign bit alone.
template <class D, class S, bool Z>
struct ToInteger {
    CUDAMOD_INLINE static D apply(S x) {
        using Limits = std::numeric_limits<D>;
        if constexpr (std::is_same_v<S, float>) x = in<Z>(x);
        const S r = to_integral(x);
        constexpr S kBeyond = std::is_signed_v<D>
                                  ? S(std::uint64_t{1} << (8 * sizeof(D) - 1))
                                  : S(std::uint64_t{1} << (8 * sizeof(D) - 1)) * S{2};
        if (r != r)
            return sizeof(D) == 8 || sizeof(S) == 8
                       ? static_cast<D>(std::uint64_t{1} << (8 * sizeof(D) - 1))
                       : D{0};
        if (r >= kBeyond) return Limits::max();
        if (r < S(Limits::min())) return Limits::min();
        return static_cast<D>(r);
    }
};

template <class T, bool Z, bool Sat>
CUDAMOD_INLINE T finished(T x) {
    if constexpr (std::is_same_v<T, float>) {
        return out<Z, Sat>(x);
    } else {
        return Sat ? saturated(x) : x;
    }
}

template <class D, class S, bool Z, bool Sat>
struct FloatToFloat {
    CUDAMOD_INLINE static D apply(S x) {
        if constexpr (std::is_same_v<S, float>) x = Z ? out<Z>(x) : x;
        const D r = static_cast<D>(x);
        // A NaN narrowed from double keeps what fits of its payload.
        if constexpr (sizeof(D) < sizeof(S) && !Sat) return Z ? flushed(r) : r;
        return finished<D, Z, Sat>(r);
    }
};
template <class T, bool Z, bool Sat>
struct Integral {
    CUDAMOD_INLINE static T apply(T x) {
        if constexpr (std::is_same_v<T, float>) x = in<Z>(x);
        return finished<T, Z, Sat>(to_integral(x));
    }
};

template <class D, class S>
Handler int_to_int(bool sat) {
    return sat ? &unary<Clamp<D, S>, D, S>
               : Handler{&unary<Resize<std::make_unsigned_t<D>, S>, std::make_unsigned_t<D>, S>};
}

template <class D, class S>
Handler int_to_float(const Form& form) {
    const Rounding rounding = rounding_of(form);
    return form.has("sat") ? with_rounding<&unary<FromInteger<D, S, true>, D, S>>(rounding)
                           : with_rounding<&unary<FromInteger<D, S, false>, D, S>>(rounding);
}

template <class D, class S>
Handler float_to_int(const Form& form) {
    const Rounding rounding = rounding_of(form);
    if constexpr (std::is_same_v<S, float>) {
        if (form.has("ftz")) return with_rounding<&unary<ToInteger<D, S, true>, D, S>>(rounding);
    }
    return with_rounding<&unary<ToInteger<D, S, false>, D, S>>(rounding);
}

template <class D, class S, bool Z>
Handler resized(const Form& form) {
    const Rounding rounding = rounding_of(form);
    return form.has("sat") ? with_rounding<&unary<FloatToFloat<D, S, Z, true>, D, S>>(rounding)
                           : with_rounding<&unary<FloatToFloat<D, S, Z, false>, D, S>>(rounding);
}
template <class T, bool Z, bool Sat>
Handler integral(Rounding rounding) {
    return with_rounding<&unary<Integral<T, Z, Sat>, T, T>>(rounding);
}
template <class D, class S>
Handler float_to_float(const Form& form, bool whole) {
    const bool ftz = form.has("ftz"), sat = form.has("sat");
    if constexpr (std::is_same_v<D, S>) {
        if (whole) {
            if (sat)
                return ftz ? integral<D, true, true>(rounding_of(form))
                           : integral<D, false, true>(rounding_of(form));
            return ftz ? integral<D, true, false>(rounding_of(form))
                       : integral<D, false, false>(rounding_of(form));
        }
    }
    return ftz ? resized<D, S, true>(form) : resized<D, S, false>(form);
}

bool is_small_float(Type type) {
    return type == Type::F16 || type == Type::BF16;
}

bool rounds_to_integral(const Form& form) {
    return form.has("rni") || form.has("rzi") || form.has("rmi") || form.has("rpi");
}
bool rounds(const Form& form) {
    return form.has("rn") || form.has("rz") || form.has("rm") || form.has("rp");
}

/// Whether every value of one integer type is one of the other.
bool fits(Type to, Type from) {
    if (is_signed(from) && !is_signed(to)) return false;
    return is_signed(to) == is_signed(from) ? size_of(to) >= size_of(from)
                                            : size_of(to) > size_of(from);
}

/// Which modifiers a pair of types needs or allows.
bool allowed(const Form& form, Type to, Type from) {
    const bool to_float = !is_integer(to), from_float = !is_integer(from);
    const bool integral_rounding = rounds_to_integral(form), rounding = rounds(form);
    if (form.has("ftz") && to != Type::F32 && from != Type::F32) return false;
    if (from_float && !to_float) return integral_rounding;
    if (!from_float && !to_float && form.has("sat") && fits(to, from)) return false;
    if (!from_float) return to_float ? rounding : !rounding && !integral_rounding;
    if (to == from) return !rounding;
    const bool narrowing =
        size_of(to) < size_of(from) || (is_small_float(to) && is_small_float(from));
    return narrowing ? rounding : !rounding && !integral_rounding;
}

} // namespace

Handler select_convert(const Form& form) {
    if (form.has("pack") || form.has("relu") || form.has("satfinite") || is_packed(form.type()) ||
        is_packed(form.types[1]) || form.type() == Type::TF32) {
        return select_packed_convert(form);
    }
    const Type to = form.types[0], from = form.types[1];
    if (!allowed(form, to, from)) return nullptr;
    if (is_small_float(to) || is_small_float(from)) return select_small_convert(form);
    return for_number(to, [&]<class D>() {
        return for_number(from, [&]<class S>() -> Handler {
            if constexpr (std::is_integral_v<D> && std::is_integral_v<S>)
                return int_to_int<D, S>(form.has("sat"));
            if constexpr (!std::is_integral_v<D> && std::is_integral_v<S>)
                return int_to_float<D, S>(form);
            if constexpr (std::is_integral_v<D> && !std::is_integral_v<S>)
                return float_to_int<D, S>(form);
            if constexpr (!std::is_integral_v<D> && !std::is_integral_v<S>) {
                return float_to_float<D, S>(form, rounds_to_integral(form));
            }
        });
    });
}

} // namespace cudamod::emulator::ptx::ops
