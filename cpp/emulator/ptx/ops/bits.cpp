/// Bit counting, bit fields and dot products.
#include "emulator/ptx/ops/lanes.h"

#include <bit>

namespace cudamod::emulator::ptx::ops {
namespace {

using std::int32_t, std::uint32_t, std::uint64_t;

template <class T>
struct Popc {
    CUDAMOD_INLINE static uint32_t apply(T a) { return static_cast<uint32_t>(std::popcount(a)); }
};
template <class T>
struct Clz {
    CUDAMOD_INLINE static uint32_t apply(T a) { return static_cast<uint32_t>(std::countl_zero(a)); }
};
template <class T, bool Signed, bool Shift>
struct Bfind {
    CUDAMOD_INLINE static uint32_t apply(T a) {
        if (Signed && (a >> (8 * sizeof(T) - 1)) != 0) a = static_cast<T>(~a);
        if (a == 0) return 0xffffffff;
        const auto leading = static_cast<uint32_t>(std::countl_zero(a));
        return Shift ? leading : static_cast<uint32_t>(8 * sizeof(T) - 1) - leading;
    }
};
struct Brev32 {
    CUDAMOD_INLINE static uint32_t apply(uint32_t a) {
        a = (a & 0x55555555) << 1 | (a >> 1 & 0x55555555);
        a = (a & 0x33333333) << 2 | (a >> 2 & 0x33333333);
        a = (a & 0x0f0f0f0f) << 4 | (a >> 4 & 0x0f0f0f0f);
        return a << 24 | (a & 0xff00) << 8 | (a >> 8 & 0xff00) | a >> 24;
    }
};
struct Brev64 {
    CUDAMOD_INLINE static uint64_t apply(uint64_t a) {
        return static_cast<uint64_t>(Brev32::apply(static_cast<uint32_t>(a))) << 32 |
               Brev32::apply(static_cast<uint32_t>(a >> 32));
    }
};
/// 32-bit fields take their position and length from one byte; 64-bit ones, on the card, from the
/// whole word.
template <class T>
CUDAMOD_INLINE uint32_t field_operand(uint32_t x) {
    if constexpr (sizeof(T) == 4) return x & 0xff;
    return x < 64 ? x : 64;
}
template <class T, bool Signed>
struct Bfe {
    CUDAMOD_INLINE static T apply(T a, uint32_t b, uint32_t c) {
        constexpr uint32_t kBits = 8 * sizeof(T);
        const uint32_t position = field_operand<T>(b), length = field_operand<T>(c);
        if (length == 0) return 0;
        const uint32_t top = position + length - 1 < kBits - 1 ? position + length - 1 : kBits - 1;
        const bool sign = Signed && (a >> top & 1) != 0;
        T field = position < kBits ? static_cast<T>(a >> position) : T{0};
        const uint32_t available = position < kBits ? kBits - position : 0;
        const uint32_t kept = length < available ? length : available;
        const T ones = static_cast<T>(~T{0});
        const T keep = kept >= kBits ? ones : static_cast<T>((T{1} << kept) - 1);
        field &= keep;
        return sign ? static_cast<T>(field | static_cast<T>(~keep)) : field;
    }
};
template <class T>
struct Bfi {
    CUDAMOD_INLINE static T apply(T a, T b, uint32_t c, uint32_t e) {
        constexpr uint32_t kBits = 8 * sizeof(T);
        const uint32_t position = field_operand<T>(c), length = field_operand<T>(e);
        if (position >= kBits || length == 0) return b;
        const T ones = static_cast<T>(~T{0});
        const T keep = static_cast<T>(
            (length >= kBits ? ones : static_cast<T>((T{1} << length) - 1)) << position);
        return static_cast<T>((b & static_cast<T>(~keep)) | (static_cast<T>(a << position) & keep));
    }
};
struct Fns {
    CUDAMOD_INLINE static uint32_t apply(uint32_t mask, uint32_t base, int32_t offset) {
        if (offset == INT32_MIN) return 0; // the card's answer
        if (base > 31) return 0xffffffff;
        if (offset == 0) return (mask >> base & 1) != 0 ? base : 0xffffffff;
        const int step = offset > 0 ? 1 : -1;
        std::int64_t count = (offset > 0 ? std::int64_t{offset} : -std::int64_t{offset}) - 1;
        for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
            if ((mask >> at & 1) == 0) continue;
            if (count-- == 0) return static_cast<uint32_t>(at);
        }
        return 0xffffffff;
    }
};
template <bool Clamp, bool Signed>
struct Szext {
    CUDAMOD_INLINE static uint32_t apply(uint32_t a, uint32_t b) {
        const uint32_t width = b & 31;
        const bool too_large = Clamp && b >= 32;
        const uint32_t upper = too_large ? 0 : ~0u << width;
        const bool sign = Signed && width != 0 && !too_large && (a >> (width - 1) & 1) != 0;
        return (a & ~upper) | (sign ? upper : 0);
    }
};
template <bool Clamp>
struct Bmsk {
    CUDAMOD_INLINE static uint32_t apply(uint32_t a, uint32_t b) {
        const uint32_t position = a & 31, width = b & 31, end = position + width;
        const uint32_t from = Clamp && a >= 32 ? 0 : ~0u << position;
        const bool to_the_top = end >= 32 || (Clamp && (a >= 32 || b >= 32));
        const uint32_t beyond = to_the_top ? 0 : ~0u << end;
        return from & ~beyond;
    }
};

template <bool Signed>
CUDAMOD_INLINE int32_t byte_of(uint32_t x, unsigned n) {
    return Signed ? static_cast<int32_t>(static_cast<std::int8_t>(x >> (8 * n)))
                  : static_cast<int32_t>(static_cast<std::uint8_t>(x >> (8 * n)));
}
template <bool Signed>
CUDAMOD_INLINE int32_t half_of(uint32_t x, unsigned n) {
    return Signed ? static_cast<int32_t>(static_cast<std::int16_t>(x >> (16 * n)))
                  : static_cast<int32_t>(static_cast<std::uint16_t>(x >> (16 * n)));
}
template <bool A, bool B>
struct Dp4a {
    CUDAMOD_INLINE static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
        for (unsigned n = 0; n < 4; ++n)
            c += static_cast<uint32_t>(byte_of<A>(a, n) * byte_of<B>(b, n));
        return c;
    }
};
template <bool A, bool B, unsigned First>
struct Dp2a {
    CUDAMOD_INLINE static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
        for (unsigned n = 0; n < 2; ++n)
            c += static_cast<uint32_t>(half_of<A>(a, n) * byte_of<B>(b, First + n));
        return c;
    }
};

template <class F>
Handler word2() {
    return &binary<F, uint32_t, uint32_t>;
}
template <class F>
Handler word3() {
    return &ternary<F, uint32_t, uint32_t>;
}

template <bool A, bool B>
Handler dot(const Form& form) {
    if (form.is("dp4a")) return word3<Dp4a<A, B>>();
    return form.has("hi") ? word3<Dp2a<A, B, 2>>() : word3<Dp2a<A, B, 0>>();
}

template <class T, bool Signed>
Handler find(const Form& form) {
    return form.has("shiftamt") ? &unary<Bfind<T, Signed, true>, uint32_t, T>
                                : Handler{&unary<Bfind<T, Signed, false>, uint32_t, T>};
}

} // namespace

Handler select_bits(const Form& form) {
    const bool narrow = size_of(form.type()) == 4;
    const bool sign = is_signed(form.type());
    if (form.is("popc"))
        return narrow ? &unary<Popc<uint32_t>, uint32_t, uint32_t>
                      : Handler{&unary<Popc<uint64_t>, uint32_t, uint64_t>};
    if (form.is("clz"))
        return narrow ? &unary<Clz<uint32_t>, uint32_t, uint32_t>
                      : Handler{&unary<Clz<uint64_t>, uint32_t, uint64_t>};
    if (form.is("brev"))
        return narrow ? &unary<Brev32, uint32_t, uint32_t>
                      : Handler{&unary<Brev64, uint64_t, uint64_t>};
    if (form.is("bfind")) {
        if (narrow) return sign ? find<uint32_t, true>(form) : find<uint32_t, false>(form);
        return sign ? find<uint64_t, true>(form) : find<uint64_t, false>(form);
    }
    if (form.is("bfe")) {
        if (narrow) {
            return sign ? &ternary<Bfe<uint32_t, true>, uint32_t, uint32_t>
                        : Handler{&ternary<Bfe<uint32_t, false>, uint32_t, uint32_t>};
        }
        return sign ? &ternary<Bfe<uint64_t, true>, uint64_t, uint64_t, uint32_t>
                    : Handler{&ternary<Bfe<uint64_t, false>, uint64_t, uint64_t, uint32_t>};
    }
    if (form.is("bfi")) {
        return narrow ? &quaternary<Bfi<uint32_t>, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>
                      : Handler{&quaternary<Bfi<uint64_t>, uint64_t, uint64_t, uint64_t, uint32_t,
                                            uint32_t>};
    }
    if (form.is("fns")) return &ternary<Fns, uint32_t, uint32_t, uint32_t, int32_t>;
    if (form.is("szext")) {
        if (form.has("clamp"))
            return sign ? word2<Szext<true, true>>() : word2<Szext<true, false>>();
        return sign ? word2<Szext<false, true>>() : word2<Szext<false, false>>();
    }
    if (form.is("bmsk")) return form.has("clamp") ? word2<Bmsk<true>>() : word2<Bmsk<false>>();
    if (form.is("dp4a") || form.is("dp2a")) {
        const bool second = is_signed(form.types[1]);
        if (sign) return second ? dot<true, true>(form) : dot<true, false>(form);
        return second ? dot<false, true>(form) : dot<false, false>(form);
    }
    return nullptr;
}

} // namespace cudamod::emulator::ptx::ops
