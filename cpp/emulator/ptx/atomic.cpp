/// atom and red.
#include "emulator/ptx/ops/floats.h"
#include "emulator/ptx/runtime.h"
#include "emulator/ptx/worker.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace cudamod::emulator::ptx {
namespace {

using std::uint16_t, std::uint32_t, std::uint64_t;

template <class T>
struct Add {
    static T apply(T old, T b, T) {
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                              static_cast<std::make_unsigned_t<T>>(b));
    }
};
template <class T>
struct And {
    static T apply(T old, T b, T) { return old & b; }
};
template <class T>
struct Or {
    static T apply(T old, T b, T) { return old | b; }
};
template <class T>
struct Xor {
    static T apply(T old, T b, T) { return old ^ b; }
};
template <class T>
struct Exch {
    static T apply(T, T b, T) { return b; }
};
template <class T>
struct Cas {
    static T apply(T old, T b, T c) { return old == b ? c : old; }
};
template <class T>
struct Min {
    static T apply(T old, T b, T) { return std::min(old, b); }
};
template <class T>
struct Max {
    static T apply(T old, T b, T) { return std::max(old, b); }
};
template <class T>
struct Inc {
    static T apply(T old, T b, T) { return old >= b ? 0 : old + 1; }
};
template <class T>
struct Dec {
    static T apply(T old, T b, T) { return old == 0 || old > b ? b : old - 1; }
};

/// Single precision in global memory flushes denormals; in shared memory it does not.
template <bool Flush>
struct AddSingle {
    static uint32_t apply(uint32_t old, uint32_t b, uint32_t) {
        using namespace ops;
        return bits(out<Flush>(in<Flush>(single(old)) + in<Flush>(single(b))));
    }
};
struct AddDouble {
    static uint64_t apply(uint64_t old, uint64_t b, uint64_t) {
        return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    }
};
template <bool Bfloat>
struct AddHalf {
    static uint16_t apply(uint16_t old, uint16_t b, uint16_t) {
        using namespace ops;
        if (Bfloat)
            return to_bfloat(static_cast<double>(bfloat_value(old)) +
                             static_cast<double>(bfloat_value(b)));
        return to_half(static_cast<double>(half_value(old)) + static_cast<double>(half_value(b)));
    }
};
/// The smaller or larger one; a NaN only if both are.
template <bool Bfloat, bool Larger>
struct ExtremeHalf {
    static uint16_t apply(uint16_t old, uint16_t b, uint16_t) {
        using namespace ops;
        const float x = Bfloat ? bfloat_value(old) : half_value(old),
                    y = Bfloat ? bfloat_value(b) : half_value(b);
        if (x != x) return y != y ? 0x7fff : b;
        if (y != y) return old;
        if (x == y) return Larger ? old & b : old | b;
        return (Larger ? x > y : x < y) ? old : b;
    }
};
template <class F>
struct Halves {
    static uint32_t apply(uint32_t old, uint32_t b, uint32_t) {
        const auto part = [](uint32_t x, unsigned n) {
            return static_cast<uint16_t>(x >> (16 * n));
        };
        return static_cast<uint32_t>(F::apply(part(old, 1), part(b, 1), 0)) << 16 |
               F::apply(part(old, 0), part(b, 0), 0);
    }
};

template <Where S>
std::byte* locate(Warp& w, const Instruction& i, unsigned l, uint64_t address, uint32_t size) {
    if constexpr (S == Where::Shared) return w.worker->find_shared(w, i, l, address, size);
    const Window& window = w.worker->windows[i.cache];
    if (address % size == 0 && address >= window.begin && address < window.end &&
        window.end - address >= size) {
        return window.host + (address - window.begin);
    }
    if constexpr (S == Where::Generic) return w.worker->find_generic(w, i, l, address, size, true);
    return w.worker->find_global(w, i, l, address, size, true);
}

template <class F, class T, Where S>
void atomic(Warp& w, const Instruction& i, uint32_t mask) {
    const auto* base = w.at<uint64_t>(i.slots[kAddressSlot]);
    T* d = i.slots[0] == kNoSlot ? nullptr : w.at<T>(i.slots[0]);
    const T* b = w.at<T>(i.slots[1]);
    const T* c = i.slots[2] == kNoSlot ? b : w.at<T>(i.slots[2]);
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(rest));
        auto* at = reinterpret_cast<T*>(
            locate<S>(w, i, l, base[l] + static_cast<uint64_t>(i.immediate), sizeof(T)));
        T old = __atomic_load_n(at, __ATOMIC_RELAXED);
        T desired = F::apply(old, b[l], c[l]);
        while (!__atomic_compare_exchange_n(at, &old, desired, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
            desired = F::apply(old, b[l], c[l]);
        }
        if (d != nullptr) d[l] = old;
    }
}

template <class F, class T>
void combine(std::byte* at, const std::byte* value) {
    T operand;
    std::memcpy(&operand, value, sizeof operand);
    auto* to = reinterpret_cast<T*>(at);
    T old = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(to, &old, F::apply(old, operand, operand), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
}

template <template <class> class F>
Combine integer_combine(Type type) {
    switch (type) {
    case Type::S32:
        return &combine<F<std::int32_t>, std::int32_t>;
    case Type::S64:
        return &combine<F<std::int64_t>, std::int64_t>;
    case Type::U64:
    case Type::B64:
        return &combine<F<uint64_t>, uint64_t>;
    case Type::U32:
    case Type::B32:
        return &combine<F<uint32_t>, uint32_t>;
    default:
        return nullptr;
    }
}

Combine add_combine(Type type) {
    switch (type) {
    case Type::F32:
        return &combine<AddSingle<true>, uint32_t>;
    case Type::F64:
        return &combine<AddDouble, uint64_t>;
    case Type::F16:
        return &combine<AddHalf<false>, uint16_t>;
    case Type::BF16:
        return &combine<AddHalf<true>, uint16_t>;
    default:
        return integer_combine<Add>(type);
    }
}

template <class F, class T>
Handler at(Where where) {
    switch (where) {
    case Where::Global:
        return &atomic<F, T, Where::Global>;
    case Where::Shared:
        return &atomic<F, T, Where::Shared>;
    default:
        return &atomic<F, T, Where::Generic>;
    }
}

template <template <class> class F>
Handler integer(Type type, Where where) {
    switch (type) {
    case Type::B16:
        return at<F<uint16_t>, uint16_t>(where);
    case Type::S32:
        return at<F<std::int32_t>, std::int32_t>(where);
    case Type::S64:
        return at<F<std::int64_t>, std::int64_t>(where);
    case Type::U64:
    case Type::B64:
        return at<F<uint64_t>, uint64_t>(where);
    default:
        return at<F<uint32_t>, uint32_t>(where);
    }
}

Handler add(Type type, Where where) {
    switch (type) {
    case Type::F32:
        return where == Where::Shared ? at<AddSingle<false>, uint32_t>(where)
                                      : at<AddSingle<true>, uint32_t>(where);
    case Type::F64:
        return at<AddDouble, uint64_t>(where);
    case Type::F16:
        return at<AddHalf<false>, uint16_t>(where);
    case Type::BF16:
        return at<AddHalf<true>, uint16_t>(where);
    case Type::F16x2:
        return at<Halves<AddHalf<false>>, uint32_t>(where);
    case Type::BF16x2:
        return at<Halves<AddHalf<true>>, uint32_t>(where);
    default:
        return integer<Add>(type, where);
    }
}

template <bool Larger>
Handler half_extreme(Type type, Where where) {
    switch (type) {
    case Type::F16:
        return at<ExtremeHalf<false, Larger>, uint16_t>(where);
    case Type::BF16:
        return at<ExtremeHalf<true, Larger>, uint16_t>(where);
    case Type::F16x2:
        return at<Halves<ExtremeHalf<false, Larger>>, uint32_t>(where);
    default:
        return at<Halves<ExtremeHalf<true, Larger>>, uint32_t>(where);
    }
}

} // namespace

Combine select_combine(Reduction reduction, Type type) {
    switch (reduction) {
    case Reduction::Add:
        return add_combine(type);
    case Reduction::Min:
        return integer_combine<Min>(type);
    case Reduction::Max:
        return integer_combine<Max>(type);
    case Reduction::And:
        return integer_combine<And>(type);
    case Reduction::Or:
        return integer_combine<Or>(type);
    case Reduction::Xor:
        return integer_combine<Xor>(type);
    case Reduction::Inc:
        return type == Type::U32 ? &combine<Inc<uint32_t>, uint32_t> : nullptr;
    default:
        return type == Type::U32 ? &combine<Dec<uint32_t>, uint32_t> : nullptr;
    }
}

Handler select_atomic(const Form& form, Where where) {
    const Type type = form.type();
    if (form.has("add")) return add(type, where);
    if (form.has("and")) return integer<And>(type, where);
    if (form.has("or")) return integer<Or>(type, where);
    if (form.has("xor")) return integer<Xor>(type, where);
    if (form.has("exch")) return integer<Exch>(type, where);
    if (form.has("cas")) return integer<Cas>(type, where);
    if (form.has("noftz"))
        return form.has("min") ? half_extreme<false>(type, where) : half_extreme<true>(type, where);
    if (form.has("min")) return integer<Min>(type, where);
    if (form.has("max")) return integer<Max>(type, where);
    return form.has("inc") ? at<Inc<uint32_t>, uint32_t>(where)
                           : at<Dec<uint32_t>, uint32_t>(where);
}

} // namespace cudamod::emulator::ptx
