/// Integer arithmetic without carry.
#include "emulator/ptx/ops/lanes.h"

#include <limits>
#include <type_traits>

namespace cudamod::emulator::ptx::ops {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
struct Wide;
template <>
struct Wide<std::uint16_t> {
    using type = std::uint32_t;
};
template <>
struct Wide<std::int16_t> {
    using type = std::int32_t;
};
template <>
struct Wide<std::uint32_t> {
    using type = std::uint64_t;
};
template <>
struct Wide<std::int32_t> {
    using type = std::int64_t;
};
template <>
struct Wide<std::uint64_t> {
    using type = unsigned __int128;
};
template <>
struct Wide<std::int64_t> {
    using type = __int128;
};

template <class T>
CUDAMOD_INLINE T wrap(Unsigned<T> value) {
    return static_cast<T>(value);
}
// 16-bit products would overflow int after promotion; 64 bits are always wide enough for the low
// half.
template <class T>
CUDAMOD_INLINE T low(T a, T b) {
    using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}
template <class T>
CUDAMOD_INLINE T high(T a, T b) {
    using W = typename Wide<T>::type;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
}
template <class T>
CUDAMOD_INLINE T plus(T a, T b) {
    return wrap<T>(
        static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b)));
}
CUDAMOD_INLINE std::int32_t clamped(std::int64_t value) {
    if (value > std::numeric_limits<std::int32_t>::max())
        return std::numeric_limits<std::int32_t>::max();
    if (value < std::numeric_limits<std::int32_t>::min())
        return std::numeric_limits<std::int32_t>::min();
    return static_cast<std::int32_t>(value);
}

template <class T>
struct Add {
    CUDAMOD_INLINE static T apply(T a, T b) { return plus(a, b); }
};
template <class T>
struct Sub {
    CUDAMOD_INLINE static T apply(T a, T b) {
        return wrap<T>(
            static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b)));
    }
};
struct AddSat {
    CUDAMOD_INLINE static std::int32_t apply(std::int32_t a, std::int32_t b) {
        return clamped(std::int64_t{a} + b);
    }
};
struct SubSat {
    CUDAMOD_INLINE static std::int32_t apply(std::int32_t a, std::int32_t b) {
        return clamped(std::int64_t{a} - b);
    }
};
template <class T>
struct MulLo {
    CUDAMOD_INLINE static T apply(T a, T b) { return low(a, b); }
};
template <class T>
struct MulHi {
    CUDAMOD_INLINE static T apply(T a, T b) { return high(a, b); }
};
template <class T>
struct MulWide {
    using W = typename Wide<T>::type;
    CUDAMOD_INLINE static W apply(T a, T b) {
        return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
    }
};
template <class T>
struct MadLo {
    CUDAMOD_INLINE static T apply(T a, T b, T c) { return plus(low(a, b), c); }
};
template <class T>
struct MadHi {
    CUDAMOD_INLINE static T apply(T a, T b, T c) { return plus(high(a, b), c); }
};
template <class T>
struct MadWide {
    using W = typename Wide<T>::type;
    CUDAMOD_INLINE static W apply(T a, T b, W c) {
        return static_cast<W>(static_cast<Unsigned<W>>(static_cast<W>(a) * static_cast<W>(b)) +
                              static_cast<Unsigned<W>>(c));
    }
};
struct MadHiSat {
    CUDAMOD_INLINE static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
        return clamped(std::int64_t{high(a, b)} + c);
    }
};

template <class T>
CUDAMOD_INLINE std::int64_t product24(T a, T b) {
    if constexpr (std::is_signed_v<T>) {
        const auto extend = [](T x) {
            return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << 8) >> 8;
        };
        return std::int64_t{extend(a)} * extend(b);
    } else {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a & 0xffffff) * (b & 0xffffff));
    }
}
template <class T>
struct Mul24Lo {
    CUDAMOD_INLINE static T apply(T a, T b) { return static_cast<T>(product24(a, b)); }
};
template <class T>
struct Mul24Hi {
    CUDAMOD_INLINE static T apply(T a, T b) { return static_cast<T>(product24(a, b) >> 16); }
};
template <class T>
struct Mad24Lo {
    CUDAMOD_INLINE static T apply(T a, T b, T c) { return plus(Mul24Lo<T>::apply(a, b), c); }
};
template <class T>
struct Mad24Hi {
    CUDAMOD_INLINE static T apply(T a, T b, T c) { return plus(Mul24Hi<T>::apply(a, b), c); }
};
struct Mad24HiSat {
    CUDAMOD_INLINE static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
        return clamped(std::int64_t{Mul24Hi<std::int32_t>::apply(a, b)} + c);
    }
};

template <class T>
struct Sad {
    CUDAMOD_INLINE static T apply(T a, T b, T c) {
        using U = Unsigned<T>;
        const U difference = a > b ? static_cast<U>(static_cast<U>(a) - static_cast<U>(b))
                                   : static_cast<U>(static_cast<U>(b) - static_cast<U>(a));
        return plus(static_cast<T>(difference), c);
    }
};
// PTX leaves division by zero unspecified; these are the card's answers.
template <class T>
struct Div {
    CUDAMOD_INLINE static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(-1);
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) return wrap<T>(static_cast<Unsigned<T>>(0 - static_cast<Unsigned<T>>(a)));
        }
        return static_cast<T>(a / b);
    }
};
template <class T>
struct Rem {
    CUDAMOD_INLINE static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(-1);
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) return 0;
        }
        return static_cast<T>(a % b);
    }
};
template <class T>
struct Abs {
    CUDAMOD_INLINE static T apply(T a) {
        return a < 0 ? wrap<T>(static_cast<Unsigned<T>>(0 - static_cast<Unsigned<T>>(a))) : a;
    }
};
template <class T>
struct Neg {
    CUDAMOD_INLINE static T apply(T a) {
        return wrap<T>(static_cast<Unsigned<T>>(0 - static_cast<Unsigned<T>>(a)));
    }
};
template <class T>
struct Min {
    CUDAMOD_INLINE static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max {
    CUDAMOD_INLINE static T apply(T a, T b) { return a > b ? a : b; }
};
template <class F>
struct Relu {
    CUDAMOD_INLINE static std::int32_t apply(std::int32_t a, std::int32_t b) {
        const std::int32_t r = F::apply(a, b);
        return r < 0 ? 0 : r;
    }
};

template <class F, class T, bool Positive = false>
struct Halves {
    CUDAMOD_INLINE static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
        T lo = F::apply(static_cast<T>(a), static_cast<T>(b));
        T hi = F::apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
        if constexpr (Positive) {
            lo = lo < 0 ? T{0} : lo;
            hi = hi < 0 ? T{0} : hi;
        }
        return static_cast<std::uint16_t>(lo) |
               static_cast<std::uint32_t>(static_cast<std::uint16_t>(hi)) << 16;
    }
};

template <template <class> class F>
Handler unary_of(Type type) {
    return for_integer(type, []<class T>() -> Handler { return &unary<F<T>, T, T>; });
}
template <template <class> class F>
Handler binary_of(Type type) {
    return for_integer(type, []<class T>() -> Handler { return &binary<F<T>, T, T>; });
}
template <template <class> class F>
Handler ternary_of(Type type) {
    return for_integer(type, []<class T>() -> Handler { return &ternary<F<T>, T, T>; });
}
template <class F>
Handler relu_of() {
    return &binary<Relu<F>, std::int32_t, std::int32_t>;
}

template <template <class> class F>
Handler halves_of(const Form& form) {
    using std::int16_t, std::uint16_t, std::uint32_t;
    if (form.type() == Type::U16x2)
        return &binary<Halves<F<uint16_t>, uint16_t>, uint32_t, uint32_t>;
    if (form.has("relu")) return &binary<Halves<F<int16_t>, int16_t, true>, uint32_t, uint32_t>;
    return &binary<Halves<F<int16_t>, int16_t>, uint32_t, uint32_t>;
}

Handler widening(Type type, bool add) {
    switch (type) {
    case Type::U16:
        return add ? &ternary<MadWide<std::uint16_t>, std::uint32_t, std::uint16_t, std::uint16_t,
                              std::uint32_t>
                   : Handler{&binary<MulWide<std::uint16_t>, std::uint32_t, std::uint16_t>};
    case Type::S16:
        return add ? &ternary<MadWide<std::int16_t>, std::int32_t, std::int16_t, std::int16_t,
                              std::int32_t>
                   : Handler{&binary<MulWide<std::int16_t>, std::int32_t, std::int16_t>};
    case Type::U32:
        return add ? &ternary<MadWide<std::uint32_t>, std::uint64_t, std::uint32_t, std::uint32_t,
                              std::uint64_t>
                   : Handler{&binary<MulWide<std::uint32_t>, std::uint64_t, std::uint32_t>};
    default:
        return add ? &ternary<MadWide<std::int32_t>, std::int64_t, std::int32_t, std::int32_t,
                              std::int64_t>
                   : Handler{&binary<MulWide<std::int32_t>, std::int64_t, std::int32_t>};
    }
}

Handler multiply(const Form& form) {
    const Type type = form.type();
    const bool add = form.is("mad");
    if (form.has("wide")) return widening(type, add);
    if (form.has("sat")) return &ternary<MadHiSat, std::int32_t, std::int32_t>;
    if (form.has("hi")) return add ? ternary_of<MadHi>(type) : binary_of<MulHi>(type);
    return add ? ternary_of<MadLo>(type) : binary_of<MulLo>(type);
}

Handler multiply24(const Form& form) {
    const Type type = form.type();
    if (form.has("sat")) return &ternary<Mad24HiSat, std::int32_t, std::int32_t>;
    const auto with = [&]<template <class> class Two, template <class> class Three>() -> Handler {
        if (form.is("mul24")) {
            return type == Type::U32
                       ? Handler{&binary<Two<std::uint32_t>, std::uint32_t, std::uint32_t>}
                       : &binary<Two<std::int32_t>, std::int32_t, std::int32_t>;
        }
        return type == Type::U32
                   ? Handler{&ternary<Three<std::uint32_t>, std::uint32_t, std::uint32_t>}
                   : &ternary<Three<std::int32_t>, std::int32_t, std::int32_t>;
    };
    return form.has("hi") ? with.template operator()<Mul24Hi, Mad24Hi>()
                          : with.template operator()<Mul24Lo, Mad24Lo>();
}

} // namespace

Handler select_integer(const Form& form) {
    const Type type = form.type();
    if (form.has("cc") || form.is("addc") || form.is("subc") || form.is("madc"))
        return select_extended(form);
    if (form.is("mul24") || form.is("mad24")) return multiply24(form);
    if (form.is("mul") || form.is("mad")) return multiply(form);
    if (is_packed(type)) {
        if (form.is("add")) return halves_of<Add>(form);
        return form.is("min") ? halves_of<Min>(form) : halves_of<Max>(form);
    }
    if (form.is("add"))
        return form.has("sat") ? &binary<AddSat, std::int32_t, std::int32_t> : binary_of<Add>(type);
    if (form.is("sub"))
        return form.has("sat") ? &binary<SubSat, std::int32_t, std::int32_t> : binary_of<Sub>(type);
    if (form.is("sad")) return ternary_of<Sad>(type);
    if (form.is("div")) return binary_of<Div>(type);
    if (form.is("rem")) return binary_of<Rem>(type);
    if (form.is("abs")) return unary_of<Abs>(type);
    if (form.is("neg")) return unary_of<Neg>(type);
    if (form.is("min"))
        return form.has("relu") ? relu_of<Min<std::int32_t>>() : binary_of<Min>(type);
    if (form.is("max"))
        return form.has("relu") ? relu_of<Max<std::int32_t>>() : binary_of<Max>(type);
    return select_bits(form);
}

} // namespace cudamod::emulator::ptx::ops
