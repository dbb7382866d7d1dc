/// Half precision and bfloat16, alone and in pairs. Operands are exact in double, and so is every
/// double result that lies near a tie of these formats.
#include "emulator/ptx/ops/floats.h"

#include <cmath>

namespace cudamod::emulator::ptx::ops {

namespace {

using std::uint16_t, std::uint32_t;

enum class Op : uint32_t { Add, Sub, Mul, Fma, Neg, Abs, Min, Max, Ex2, Tanh };
/// kBounds: a factor that marks an element out of bounds makes the result 0.
enum Flag : uint32_t {
    kFlush = 1,
    kSaturate = 2,
    kRelu = 4,
    kNan = 8,
    kXorSign = 16,
    kBounds = 32
};
constexpr uint16_t kOutOfBounds = 0xffff;

template <bool B>
struct Element {
    static constexpr uint16_t kSign = 0x8000, kNanBits = 0x7fff;
    static constexpr uint16_t kInfinity = B ? 0x7f80 : 0x7c00, kSmallest = B ? 0x0080 : 0x0400,
                              kOne = B ? 0x3f80 : 0x3c00;
    CUDAMOD_INLINE static double value(uint16_t x) {
        return static_cast<double>(B ? bfloat_value(x) : half_value(x));
    }
    CUDAMOD_INLINE static uint16_t round(double x) { return B ? to_bfloat(x) : to_half(x); }
    CUDAMOD_INLINE static bool is_nan(uint16_t x) { return (x & 0x7fff) > kInfinity; }
    CUDAMOD_INLINE static uint16_t flush(uint16_t x, uint32_t flags) {
        return (flags & kFlush) != 0 && (x & 0x7fff) < kSmallest ? x & kSign : x;
    }
};

template <bool B>
CUDAMOD_INLINE uint16_t extreme(uint16_t a, uint16_t b, bool larger, uint32_t flags) {
    using E = Element<B>;
    const uint16_t sign = (a ^ b) & E::kSign;
    if ((flags & kXorSign) != 0) a &= 0x7fff, b &= 0x7fff;
    const bool nan_a = E::is_nan(a), nan_b = E::is_nan(b);
    if ((nan_a && nan_b) || ((flags & kNan) != 0 && (nan_a || nan_b))) return E::kNanBits;
    uint16_t r = a;
    if (nan_a) {
        r = b;
    } else if (!nan_b) {
        const double x = E::value(a), y = E::value(b);
        if (x == y) {
            r = larger ? a & b : a | b;
        } else {
            r = (larger ? x > y : x < y) ? a : b;
        }
    }
    return (flags & kXorSign) != 0 ? (r & 0x7fff) | sign : r;
}

template <bool B>
CUDAMOD_INLINE uint16_t apply(Op op, uint16_t a, uint16_t b, uint16_t c, uint32_t flags) {
    using E = Element<B>;
    if ((flags & kBounds) != 0 && (a == kOutOfBounds || b == kOutOfBounds)) return 0;
    a = E::flush(a, flags), b = E::flush(b, flags), c = E::flush(c, flags);
    if (op == Op::Neg) return E::is_nan(a) ? E::kNanBits : a ^ E::kSign;
    if (op == Op::Abs) return E::is_nan(a) ? E::kNanBits : a & 0x7fff;
    if (op == Op::Min || op == Op::Max) return extreme<B>(a, b, op == Op::Max, flags);
    const double x = E::value(a), y = E::value(b), z = E::value(c);
    double r = 0;
    switch (op) {
    case Op::Add:
        r = x + y;
        break;
    case Op::Sub:
        r = x - y;
        break;
    case Op::Mul:
        r = x * y;
        break;
    case Op::Fma:
        r = fused_to_odd(x, y, z);
        break;
    case Op::Ex2:
        r = __builtin_exp2(x);
        break;
    default:
        r = __builtin_tanh(x);
        break;
    }
    if ((flags & kSaturate) != 0) r = r > 0 ? (r < 1 ? r : 1.0) : 0.0;
    if ((flags & kRelu) != 0 && r <= 0) r = 0;
    return E::flush(E::round(r), flags);
}

// Instruction::extra: Op, flags << 8.
template <bool B, bool Pair, unsigned Operands>
void arithmetic(Warp& w, const Instruction& i, uint32_t mask) {
    using T = std::conditional_t<Pair, uint32_t, uint16_t>;
    const auto op = static_cast<Op>(i.extra & 0xff);
    const uint32_t flags = i.extra >> 8;
    T* d = w.at<T>(i.slots[0]);
    const T* a = w.at<T>(i.slots[1]);
    const T* b = Operands > 1 ? w.at<T>(i.slots[2]) : a;
    const T* c = Operands > 2 ? w.at<T>(i.slots[3]) : a;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        uint32_t r = 0;
        for (unsigned n = 0; n < (Pair ? 2u : 1u); ++n) {
            const auto part = [n](T x) { return static_cast<uint16_t>(x >> (Pair ? 16 * n : 0)); };
            r |= static_cast<uint32_t>(apply<B>(op, part(a[l]), part(b[l]), part(c[l]), flags))
                 << (16 * n);
        }
        d[l] = static_cast<T>(r);
    }
}

enum class Order : uint32_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

CUDAMOD_INLINE bool holds(Order order, double a, double b) {
    switch (order) {
    case Order::Eq:
        return a == b;
    case Order::Ne:
        return a < b || a > b;
    case Order::Lt:
        return a < b;
    case Order::Le:
        return a <= b;
    case Order::Gt:
        return a > b;
    case Order::Ge:
        return a >= b;
    case Order::Equ:
        return !(a < b || a > b);
    case Order::Neu:
        return a != b;
    case Order::Ltu:
        return !(a >= b);
    case Order::Leu:
        return !(a > b);
    case Order::Gtu:
        return !(a <= b);
    case Order::Geu:
        return !(a < b);
    case Order::Num:
        return a == a && b == b;
    default:
        return a != a || b != b;
    }
}

CUDAMOD_INLINE uint32_t combined(std::int64_t combine, uint32_t value, uint32_t with) {
    return combine == 1   ? value & with
           : combine == 2 ? value | with
           : combine == 3 ? value ^ with
                          : value;
}

template <bool B, bool Pair>
CUDAMOD_INLINE uint32_t where(const Warp& w, Slot sa, Slot sb, Order order, uint32_t flags,
                              unsigned n) {
    using E = Element<B>;
    using T = std::conditional_t<Pair, uint32_t, uint16_t>;
    const T* a = w.at<T>(sa);
    const T* b = w.at<T>(sb);
    uint32_t result = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        const auto part = [n, flags](T x) {
            return E::value(E::flush(static_cast<uint16_t>(x >> (Pair ? 16 * n : 0)), flags));
        };
        result |= holds(order, part(a[l]), part(b[l])) ? 1u << l : 0u;
    }
    return result;
}

/// For pairs p is the lower elements' result and q the upper ones'.
template <bool B, bool Pair>
void setp(Warp& w, const Instruction& i, uint32_t mask) {
    const auto order = static_cast<Order>(i.extra & 0xff);
    const uint32_t flags = i.extra >> 8;
    const uint32_t c = i.slots[4] == kNoSlot ? 0 : *w.at<uint32_t>(i.slots[4]);
    const uint32_t p = where<B, Pair>(w, i.slots[2], i.slots[3], order, flags, 0);
    const uint32_t q = Pair ? where<B, Pair>(w, i.slots[2], i.slots[3], order, flags, 1) : ~p;
    set_predicate(w, i.slots[0], combined(i.immediate, p, c), mask);
    set_predicate(w, i.slots[1], combined(i.immediate, q, c), mask);
}

enum class Truth : uint32_t { One, AllOnes16, AllOnes32 };

// Instruction::extra: Order, flags << 8, Truth << 16.
template <bool B, bool Pair>
void set(Warp& w, const Instruction& i, uint32_t mask) {
    const auto order = static_cast<Order>(i.extra & 0xff);
    const uint32_t flags = i.extra >> 8 & 0xff;
    const auto truth = static_cast<Truth>(i.extra >> 16);
    const uint32_t yes = truth == Truth::One ? Element<B>::kOne : 0xffffu;
    const uint32_t low = where<B, Pair>(w, i.slots[1], i.slots[2], order, flags, 0);
    const uint32_t high = Pair ? where<B, Pair>(w, i.slots[1], i.slots[2], order, flags, 1) : 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        const bool p = (low >> l & 1) != 0, q = (high >> l & 1) != 0;
        if (Pair) {
            w.at<uint32_t>(i.slots[0])[l] = (p ? yes : 0u) | (q ? yes << 16 : 0u);
        } else if (truth == Truth::AllOnes32) {
            w.at<uint32_t>(i.slots[0])[l] = p ? 0xffffffff : 0u;
        } else {
            w.at<uint16_t>(i.slots[0])[l] = static_cast<uint16_t>(p ? yes : 0u);
        }
    }
}

Order order_named(std::string_view name) {
    static constexpr std::string_view kNames[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                                  "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    for (uint32_t n = 0; n < std::size(kNames); ++n) {
        if (kNames[n] == name) return static_cast<Order>(n);
    }
    return Order::Eq;
}

Op op_named(std::string_view name) {
    static constexpr std::string_view kNames[] = {"add", "sub", "mul", "fma", "neg",
                                                  "abs", "min", "max", "ex2", "tanh"};
    for (uint32_t n = 0; n < std::size(kNames); ++n) {
        if (kNames[n] == name) return static_cast<Op>(n);
    }
    return Op::Add;
}

bool is_compare(const Form& form) {
    return form.is("set") || form.is("setp");
}
bool is_pair(Type type) {
    return type == Type::F16x2 || type == Type::BF16x2;
}
bool is_bfloat(Type type) {
    return type == Type::BF16 || type == Type::BF16x2;
}

template <bool B, bool Pair>
Handler handler_of(const Form& form) {
    if (form.is("setp")) return &setp<B, Pair>;
    if (form.is("set")) return &set<B, Pair>;
    if (form.is("fma")) return &arithmetic<B, Pair, 3>;
    const bool one = form.is("neg") || form.is("abs") || form.is("ex2") || form.is("tanh");
    return one ? &arithmetic<B, Pair, 1> : Handler{&arithmetic<B, Pair, 2>};
}

} // namespace

std::uint32_t half_settings(const Form& form) {
    uint32_t flags = 0;
    if (form.has("ftz")) flags |= kFlush;
    if (form.has("sat")) flags |= kSaturate;
    if (form.has("relu")) flags |= kRelu;
    if (form.has("NaN")) flags |= kNan;
    if (form.has("xorsign")) flags |= kXorSign;
    if (form.has("oob")) flags |= kBounds;
    if (!is_compare(form)) {
        if (form.is("ex2") && is_bfloat(form.type())) flags &= ~uint32_t{kFlush};
        return static_cast<uint32_t>(op_named(form.opcode())) | flags << 8;
    }
    auto truth = Truth::One;
    if (form.is("set") && is_integer(form.type()))
        truth = size_of(form.type()) == 4 ? Truth::AllOnes32 : Truth::AllOnes16;
    return static_cast<uint32_t>(order_named(form.modifiers[0])) | flags << 8 |
           static_cast<uint32_t>(truth) << 16;
}

Handler select_half(const Form& form) {
    const Type type = form.is("set") ? form.types[1] : form.type();
    const std::string_view first = form.modifiers[0];
    if (is_compare(form) && (first == "lo" || first == "ls" || first == "hi" || first == "hs"))
        return nullptr;
    if (form.is("set")) {
        const Type to = form.type();
        const bool same_kind = is_integer(to) || is_bfloat(to) == is_bfloat(type);
        const bool fits = same_kind && (is_pair(type) ? size_of(to) == 4 : !is_pair(to));
        if (!fits) return nullptr;
    }
    if (is_bfloat(type))
        return is_pair(type) ? handler_of<true, true>(form) : handler_of<true, false>(form);
    return is_pair(type) ? handler_of<false, true>(form) : handler_of<false, false>(form);
}

} // namespace cudamod::emulator::ptx::ops
