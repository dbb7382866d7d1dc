/// setp, selp, slct.
#include "emulator/ptx/ops/floats.h"

#include <string_view>
#include <type_traits>

namespace cudamod::emulator::ptx::ops {
namespace {

using std::uint32_t;

enum class Order { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
enum class Combine { None, And, Or, Xor };

template <class T, Order O, bool Z>
struct Holds {
    CUDAMOD_INLINE static bool apply(T x, T y) {
        T a = x, b = y;
        if constexpr (std::is_same_v<T, float>) a = in<Z>(x), b = in<Z>(y);
        if constexpr (O == Order::Eq) return a == b;
        if constexpr (O == Order::Ne)
            return std::is_floating_point_v<T> ? (a < b || a > b) : a != b;
        if constexpr (O == Order::Lt) return a < b;
        if constexpr (O == Order::Le) return a <= b;
        if constexpr (O == Order::Gt) return a > b;
        if constexpr (O == Order::Ge) return a >= b;
        if constexpr (O == Order::Equ) return !(a < b || a > b);
        if constexpr (O == Order::Neu) return a != b;
        if constexpr (O == Order::Ltu) return !(a >= b);
        if constexpr (O == Order::Leu) return !(a > b);
        if constexpr (O == Order::Gtu) return !(a <= b);
        if constexpr (O == Order::Geu) return !(a < b);
        if constexpr (O == Order::Num) return a == a && b == b;
        if constexpr (O == Order::Nan) return a != a || b != b;
    }
};

CUDAMOD_INLINE uint32_t combined(Combine combine, uint32_t value, uint32_t with) {
    switch (combine) {
    case Combine::And:
        return value & with;
    case Combine::Or:
        return value | with;
    case Combine::Xor:
        return value ^ with;
    default:
        return value;
    }
}

/// slots: p, q, a, b, c; `immediate` holds the Combine.
template <class T, Order O, bool Z>
void setp(Warp& w, const Instruction& i, uint32_t mask) {
    uint32_t p = lanes_where<Holds<T, O, Z>>(w.at<T>(i.slots[2]), w.at<T>(i.slots[3]));
    if (i.slots[4] == kNoSlot) {
        set_predicate(w, i.slots[0], p, mask);
        set_predicate(w, i.slots[1], ~p, mask);
        return;
    }
    const auto combine = static_cast<Combine>(i.immediate);
    const uint32_t c = *w.at<uint32_t>(i.slots[4]);
    set_predicate(w, i.slots[0], combined(combine, p, c), mask);
    set_predicate(w, i.slots[1], combined(combine, ~p, c), mask);
}

template <class T>
void selp(Warp& w, const Instruction& i, uint32_t mask) {
    T* d = w.at<T>(i.slots[0]);
    const T* a = w.at<T>(i.slots[1]);
    const T* b = w.at<T>(i.slots[2]);
    const uint32_t p = *w.at<uint32_t>(i.slots[3]);
    if (mask == kAllLanes) {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = (p >> l & 1) != 0 ? a[l] : b[l];
    } else {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l) {
            const T chosen = (p >> l & 1) != 0 ? a[l] : b[l];
            d[l] = (mask >> l & 1) != 0 ? chosen : d[l];
        }
    }
}

template <class T>
struct SlctInteger {
    CUDAMOD_INLINE static T apply(T a, T b, std::int32_t c) { return c >= 0 ? a : b; }
};
template <class T, bool Z>
struct SlctFloat {
    CUDAMOD_INLINE static T apply(T a, T b, float c) { return in<Z>(c) >= 0.0f ? a : b; }
};

template <class T, bool Z>
Handler ordered(std::string_view name) {
    if (name == "eq") return &setp<T, Order::Eq, Z>;
    if (name == "ne") return &setp<T, Order::Ne, Z>;
    if (name == "lt" || name == "lo") return &setp<T, Order::Lt, Z>;
    if (name == "le" || name == "ls") return &setp<T, Order::Le, Z>;
    if (name == "gt" || name == "hi") return &setp<T, Order::Gt, Z>;
    if (name == "ge" || name == "hs") return &setp<T, Order::Ge, Z>;
    if constexpr (std::is_floating_point_v<T>) {
        if (name == "equ") return &setp<T, Order::Equ, Z>;
        if (name == "neu") return &setp<T, Order::Neu, Z>;
        if (name == "ltu") return &setp<T, Order::Ltu, Z>;
        if (name == "leu") return &setp<T, Order::Leu, Z>;
        if (name == "gtu") return &setp<T, Order::Gtu, Z>;
        if (name == "geu") return &setp<T, Order::Geu, Z>;
        if (name == "num") return &setp<T, Order::Num, Z>;
        if (name == "nan") return &setp<T, Order::Nan, Z>;
    }
    return nullptr;
}

/// Bits know equality only; lo, ls, hi and hs are for unsigned values; the unordered ones for
/// floats.
bool order_exists(std::string_view name, Type type) {
    const bool equality = name == "eq" || name == "ne";
    const bool unsigned_name = name == "lo" || name == "ls" || name == "hi" || name == "hs";
    if (is_bits(type)) return equality;
    if (unsigned_name) return is_integer(type) && !is_signed(type);
    return true;
}

Handler comparison(const Form& form) {
    const Type type = form.type();
    const std::string_view order = form.modifiers[0];
    if (!order_exists(order, type)) return nullptr;
    const bool flush = form.has("ftz");
    if (flush && type != Type::F32) return nullptr;
    if (type == Type::F32)
        return flush ? ordered<float, true>(order) : ordered<float, false>(order);
    if (type == Type::F64) return ordered<double, false>(order);
    if (is_bits(type)) return for_bits(type, [&]<class T>() { return ordered<T, false>(order); });
    return for_integer(type, [&]<class T>() { return ordered<T, false>(order); });
}

} // namespace

Handler select_compare(const Form& form) {
    if (form.is("setp")) return comparison(form);
    if (form.is("selp"))
        return for_bits(form.type(), []<class T>() -> Handler { return &selp<T>; });
    if (form.types[1] == Type::S32) {
        return for_bits(form.type(), []<class T>() -> Handler {
            return &ternary<SlctInteger<T>, T, T, T, std::int32_t>;
        });
    }
    if (form.has("ftz")) {
        return for_bits(form.type(), []<class T>() -> Handler {
            return &ternary<SlctFloat<T, true>, T, T, T, float>;
        });
    }
    return for_bits(form.type(), []<class T>() -> Handler {
        return &ternary<SlctFloat<T, false>, T, T, T, float>;
    });
}

} // namespace cudamod::emulator::ptx::ops
