/// Logic, shifts and byte permutation.
#include "emulator/ptx/ops/lanes.h"

namespace cudamod::emulator::ptx::ops {
namespace {

using std::uint32_t, std::uint64_t;

template <class T>
struct And {
    CUDAMOD_INLINE static T apply(T a, T b) { return a & b; }
};
template <class T>
struct Or {
    CUDAMOD_INLINE static T apply(T a, T b) { return a | b; }
};
template <class T>
struct Xor {
    CUDAMOD_INLINE static T apply(T a, T b) { return a ^ b; }
};
template <class T>
struct Not {
    CUDAMOD_INLINE static T apply(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot {
    CUDAMOD_INLINE static T apply(T a) { return a == 0 ? T{1} : T{0}; }
};
template <class T>
struct Shl {
    CUDAMOD_INLINE static T apply(T a, uint32_t b) {
        return b < 8 * sizeof(T) ? static_cast<T>(a << b) : T{0};
    }
};
template <class T>
struct Shr {
    CUDAMOD_INLINE static T apply(T a, uint32_t b) {
        constexpr uint32_t kBits = 8 * sizeof(T);
        if constexpr (T(-1) < T(0)) return static_cast<T>(a >> (b < kBits ? b : kBits - 1));
        return b < kBits ? static_cast<T>(a >> b) : T{0};
    }
};
template <bool Left, bool Wrap>
struct Shf {
    CUDAMOD_INLINE static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
        const uint32_t n = Wrap ? c & 31 : (c < 32 ? c : 32);
        const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
        return Left ? static_cast<uint32_t>((both << n) >> 32) : static_cast<uint32_t>(both >> n);
    }
};

template <template <class> class F>
void predicates(Warp& w, const Instruction& i, uint32_t mask) {
    set_predicate(w, i.slots[0],
                  F<uint32_t>::apply(*w.at<uint32_t>(i.slots[1]), *w.at<uint32_t>(i.slots[2])),
                  mask);
}
void not_predicate(Warp& w, const Instruction& i, uint32_t mask) {
    set_predicate(w, i.slots[0], ~*w.at<uint32_t>(i.slots[1]), mask);
}

CUDAMOD_INLINE uint32_t look_up(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t r = 0;
    r |= (table & 1) != 0 ? ~a & ~b & ~c : 0;
    r |= (table & 2) != 0 ? ~a & ~b & c : 0;
    r |= (table & 4) != 0 ? ~a & b & ~c : 0;
    r |= (table & 8) != 0 ? ~a & b & c : 0;
    r |= (table & 16) != 0 ? a & ~b & ~c : 0;
    r |= (table & 32) != 0 ? a & ~b & c : 0;
    r |= (table & 64) != 0 ? a & b & ~c : 0;
    r |= (table & 128) != 0 ? a & b & c : 0;
    return r;
}

void lop3(Warp& w, const Instruction& i, uint32_t mask) {
    uint32_t* d = w.at<uint32_t>(i.slots[0]);
    const uint32_t* a = w.at<uint32_t>(i.slots[1]);
    const uint32_t* b = w.at<uint32_t>(i.slots[2]);
    const uint32_t* c = w.at<uint32_t>(i.slots[3]);
    const auto table = static_cast<uint32_t>(i.immediate);
    CUDAMOD_LANES
    for (unsigned l = 0; l < kLanes; ++l) {
        d[l] = (mask >> l & 1) != 0 ? look_up(a[l], b[l], c[l], table) : d[l];
    }
}

/// lop3 whose result, not zero, is combined with a predicate.
template <bool Or>
void lop3_predicate(Warp& w, const Instruction& i, uint32_t mask) {
    const uint32_t* a = w.at<uint32_t>(i.slots[2]);
    const uint32_t* b = w.at<uint32_t>(i.slots[3]);
    const uint32_t* c = w.at<uint32_t>(i.slots[4]);
    const uint32_t q = *w.at<uint32_t>(i.slots[5]);
    uint32_t result[kLanes], any = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        result[l] = look_up(a[l], b[l], c[l], static_cast<uint32_t>(i.immediate));
        any |= result[l] != 0 ? 1u << l : 0;
    }
    if (i.slots[0] != kNoSlot) {
        uint32_t* d = w.at<uint32_t>(i.slots[0]);
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = (mask >> l & 1) != 0 ? result[l] : d[l];
    }
    set_predicate(w, i.slots[1], Or ? any | q : any & q, mask);
}

enum class Permute { Default, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };

CUDAMOD_INLINE uint32_t byte_at(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    const auto byte = static_cast<uint32_t>(both >> (8 * (selector & 7)) & 0xff);
    return (selector & 8) != 0 ? ((byte & 0x80) != 0 ? 0xffu : 0u) : byte;
}

template <Permute Mode>
struct Prmt {
    CUDAMOD_INLINE static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t r = 0;
        const uint32_t s = c & 3;
        for (uint32_t n = 0; n < 4; ++n) {
            uint32_t selector = 0;
            if constexpr (Mode == Permute::Default) selector = c >> (4 * n) & 15;
            if constexpr (Mode == Permute::F4e) selector = s + n;
            if constexpr (Mode == Permute::B4e) selector = (s - n) & 7;
            if constexpr (Mode == Permute::Rc8) selector = s;
            if constexpr (Mode == Permute::Ecl) selector = n > s ? n : s;
            if constexpr (Mode == Permute::Ecr) selector = n < s ? n : s;
            if constexpr (Mode == Permute::Rc16) selector = (s & 1) * 2 + (n & 1);
            r |= byte_at(a, b, selector) << (8 * n);
        }
        return r;
    }
};

Handler permute(const Form& form) {
    if (form.has("f4e")) return &ternary<Prmt<Permute::F4e>, uint32_t, uint32_t>;
    if (form.has("b4e")) return &ternary<Prmt<Permute::B4e>, uint32_t, uint32_t>;
    if (form.has("rc8")) return &ternary<Prmt<Permute::Rc8>, uint32_t, uint32_t>;
    if (form.has("ecl")) return &ternary<Prmt<Permute::Ecl>, uint32_t, uint32_t>;
    if (form.has("ecr")) return &ternary<Prmt<Permute::Ecr>, uint32_t, uint32_t>;
    if (form.has("rc16")) return &ternary<Prmt<Permute::Rc16>, uint32_t, uint32_t>;
    return &ternary<Prmt<Permute::Default>, uint32_t, uint32_t>;
}

template <template <class> class F>
Handler logical(Type type) {
    if (type == Type::Pred) return &predicates<F>;
    return for_bits(type, []<class T>() -> Handler { return &binary<F<T>, T, T>; });
}

} // namespace

Handler select_logic(const Form& form) {
    const Type type = form.type();
    if (form.is("lop3")) {
        if (form.has("or")) return &lop3_predicate<true>;
        return form.has("and") ? &lop3_predicate<false> : Handler{&lop3};
    }
    if (form.is("and")) return logical<And>(type);
    if (form.is("or")) return logical<Or>(type);
    if (form.is("xor")) return logical<Xor>(type);
    if (form.is("not")) {
        if (type == Type::Pred) return &not_predicate;
        return for_bits(type, []<class T>() -> Handler { return &unary<Not<T>, T, T>; });
    }
    if (form.is("cnot"))
        return for_bits(type, []<class T>() -> Handler { return &unary<Cnot<T>, T, T>; });
    if (form.is("shl"))
        return for_bits(type, []<class T>() -> Handler { return &binary<Shl<T>, T, T, uint32_t>; });
    if (form.is("shr")) {
        if (is_bits(type))
            return for_bits(type,
                            []<class T>() -> Handler { return &binary<Shr<T>, T, T, uint32_t>; });
        return for_integer(type,
                           []<class T>() -> Handler { return &binary<Shr<T>, T, T, uint32_t>; });
    }
    if (form.is("shf")) {
        if (form.has("l")) {
            return form.has("wrap") ? &ternary<Shf<true, true>, uint32_t, uint32_t>
                                    : Handler{&ternary<Shf<true, false>, uint32_t, uint32_t>};
        }
        return form.has("wrap") ? &ternary<Shf<false, true>, uint32_t, uint32_t>
                                : Handler{&ternary<Shf<false, false>, uint32_t, uint32_t>};
    }
    return form.is("prmt") ? permute(form) : nullptr;
}

} // namespace cudamod::emulator::ptx::ops
