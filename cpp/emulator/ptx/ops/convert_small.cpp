/// cvt with f16, bf16, tf32 and fp8. Values travel as double, with what an integer of 64 bits loses
/// kept as a sticky last bit, so that one rounding follows.
#include "emulator/ptx/ops/convert.h"

#include <limits>

namespace cudamod::emulator::ptx::ops {
namespace {

using std::uint16_t, std::uint32_t, std::uint64_t;

/// Rounded to odd: a later rounding to fewer bits sees the right side of every tie.
CUDAMOD_INLINE double sticky(uint64_t magnitude, bool negative) {
    const int spare = 11 - std::countl_zero(magnitude | 1);
    if (spare > 0) {
        const uint64_t lost = magnitude & ((uint64_t{1} << spare) - 1);
        magnitude = magnitude >> spare << spare;
        if (lost != 0) magnitude |= uint64_t{1} << spare;
    }
    const double value = static_cast<double>(magnitude);
    return negative ? -value : value;
}

CUDAMOD_INLINE double read(const Warp& w, Slot slot, Type type, unsigned l) {
    switch (type) {
    case Type::U8:
        return w.at<std::uint8_t>(slot)[l];
    case Type::S8:
        return w.at<std::int8_t>(slot)[l];
    case Type::U16:
        return w.at<uint16_t>(slot)[l];
    case Type::S16:
        return w.at<std::int16_t>(slot)[l];
    case Type::U32:
        return w.at<uint32_t>(slot)[l];
    case Type::S32:
        return w.at<std::int32_t>(slot)[l];
    case Type::U64:
        return sticky(w.at<uint64_t>(slot)[l], false);
    case Type::S64: {
        const std::int64_t x = w.at<std::int64_t>(slot)[l];
        return sticky(x < 0 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x),
                      x < 0);
    }
    case Type::F16: {
        const uint16_t x = w.at<uint16_t>(slot)[l];
        if ((x & 0x7fff) <= 0x7c00) return static_cast<double>(half_value(x));
        return std::bit_cast<double>(static_cast<uint64_t>(x >> 15) << 63 | 0x7ff8000000000000 |
                                     static_cast<uint64_t>(x & 0x3ff) << 42);
    }
    case Type::BF16:
        return static_cast<double>(bfloat_value(w.at<uint16_t>(slot)[l]));
    case Type::F32:
        return static_cast<double>(w.at<float>(slot)[l]);
    default:
        return w.at<double>(slot)[l];
    }
}

CUDAMOD_INLINE double integral(double x, Rounding rounding) {
    switch (rounding) {
    case Rounding::Zero:
        return __builtin_trunc(x);
    case Rounding::Down:
        return __builtin_floor(x);
    case Rounding::Up:
        return __builtin_ceil(x);
    default:
        return __builtin_nearbyint(x);
    }
}

template <class D>
CUDAMOD_INLINE D to_integer(double x) {
    using Limits = std::numeric_limits<D>;
    constexpr double kBeyond =
        static_cast<double>(uint64_t{1} << (8 * sizeof(D) - 1)) * (Limits::is_signed ? 1.0 : 2.0);
    if (x != x) return sizeof(D) == 8 ? static_cast<D>(uint64_t{1} << 63) : D{0};
    if (x >= kBeyond) return Limits::max();
    if (x < static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<D>(x);
}

CUDAMOD_INLINE void write(const Warp& w, Slot slot, Type type, unsigned l, double x,
                          Rounding rounding) {
    switch (type) {
    case Type::U8:
        w.at<std::uint8_t>(slot)[l] = to_integer<std::uint8_t>(x);
        break;
    case Type::S8:
        w.at<std::int8_t>(slot)[l] = to_integer<std::int8_t>(x);
        break;
    case Type::U16:
        w.at<uint16_t>(slot)[l] = to_integer<uint16_t>(x);
        break;
    case Type::S16:
        w.at<std::int16_t>(slot)[l] = to_integer<std::int16_t>(x);
        break;
    case Type::U32:
        w.at<uint32_t>(slot)[l] = to_integer<uint32_t>(x);
        break;
    case Type::S32:
        w.at<std::int32_t>(slot)[l] = to_integer<std::int32_t>(x);
        break;
    case Type::U64:
        w.at<uint64_t>(slot)[l] = to_integer<uint64_t>(x);
        break;
    case Type::S64:
        w.at<std::int64_t>(slot)[l] = to_integer<std::int64_t>(x);
        break;
    case Type::F16:
        w.at<uint16_t>(slot)[l] = to_half(x, rounding);
        break;
    case Type::BF16:
        w.at<uint16_t>(slot)[l] = to_bfloat(x, rounding);
        break;
    case Type::F32:
        w.at<float>(slot)[l] = out<false>(static_cast<float>(x));
        break;
    default:
        w.at<double>(slot)[l] = x;
        break;
    }
}

// Instruction::extra: destination type, source type, rounding, flags.
// The card does not flush what becomes f16: .ftz has no effect here.
constexpr uint32_t kIntegral = 1, kSaturate = 2;

void convert(Warp& w, const Instruction& i, uint32_t mask) {
    const auto to = static_cast<Type>(i.extra & 0xff),
               from = static_cast<Type>(i.extra >> 8 & 0xff);
    const auto rounding = static_cast<Rounding>(i.extra >> 16 & 0xff);
    const uint32_t flags = i.extra >> 24;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        double x = read(w, i.slots[1], from, l);
        if ((flags & kIntegral) != 0) x = integral(x, rounding);
        if ((flags & kSaturate) != 0 && !is_integer(to)) x = x > 0 ? (x < 1 ? x : 1.0) : 0.0;
        if (from == Type::F64 && to == Type::F16 && x != x) {
            w.at<uint16_t>(i.slots[0])[l] = static_cast<uint16_t>(bits(x) >> 48 & 0x8000) | 0x7e00 |
                                            static_cast<uint16_t>(bits(x) >> 42 & 0x3ff);
            continue;
        }
        write(w, i.slots[0], to, l, x, rounding);
    }
}

/// cvt.rn.f16.f32 and cvt.f32.f16, by far the most frequent.
struct HalfToSingle {
    CUDAMOD_INLINE static float apply(uint16_t a) { return half_value(a); }
};
struct BfloatToSingle {
    CUDAMOD_INLINE static float apply(uint16_t a) { return bfloat_value(a); }
};

CUDAMOD_INLINE double positive(double x, bool relu) {
    return relu && x <= 0 ? 0.0 : x;
}

enum Target : uint32_t { kToHalf, kToBfloat, kToTf32, kToE4m3, kToE5m2 };

CUDAMOD_INLINE uint32_t encoded(double x, uint32_t target, Rounding rounding, bool saturate) {
    switch (target) {
    case kToHalf:
        return to_half(x, rounding, saturate);
    case kToBfloat:
        return to_bfloat(x, rounding, saturate);
    case kToTf32:
        return encode(x, kTf32, rounding, saturate, 0) << 13;
    case kToE4m3:
        return encode(x, kE4m3, rounding, true, 0x7f);
    default:
        return encode(x, kE5m2, rounding, true, 0x7f);
    }
}

// Instruction::extra: target, rounding << 8, relu << 16, saturate << 17.
template <bool Pair, class D>
void narrow(Warp& w, const Instruction& i, uint32_t mask) {
    const uint32_t target = i.extra & 0xff;
    const auto rounding = static_cast<Rounding>(i.extra >> 8 & 0xff);
    const bool relu = (i.extra >> 16 & 1) != 0, saturate = (i.extra >> 17 & 1) != 0;
    D* d = w.at<D>(i.slots[0]);
    const float* a = w.at<float>(i.slots[1]);
    const float* b = Pair ? w.at<float>(i.slots[2]) : a;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        uint32_t r = encoded(positive(static_cast<double>(a[l]), relu), target, rounding, saturate);
        if (target == kToTf32 && a[l] != a[l]) r = bits(a[l]) & 0xffffe000;
        if (Pair) {
            r = r << (4 * sizeof(D)) |
                encoded(positive(static_cast<double>(b[l]), relu), target, rounding, saturate);
        }
        d[l] = static_cast<D>(r);
    }
}

void narrow_halves(Warp& w, const Instruction& i, uint32_t mask) {
    const uint32_t target = i.extra & 0xff;
    const bool relu = (i.extra >> 16 & 1) != 0;
    uint16_t* d = w.at<uint16_t>(i.slots[0]);
    const uint32_t* a = w.at<uint32_t>(i.slots[1]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        uint32_t r = 0;
        for (unsigned n = 0; n < 2; ++n) {
            const double x =
                static_cast<double>(half_value(static_cast<uint16_t>(a[l] >> (16 * n))));
            r |= encoded(positive(x, relu), target, Rounding::Nearest, true) << (8 * n);
        }
        d[l] = static_cast<uint16_t>(r);
    }
}

template <bool E4>
void widen_bytes(Warp& w, const Instruction& i, uint32_t mask) {
    const bool relu = (i.extra >> 16 & 1) != 0;
    uint32_t* d = w.at<uint32_t>(i.slots[0]);
    const uint16_t* a = w.at<uint16_t>(i.slots[1]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        uint32_t r = 0;
        for (unsigned n = 0; n < 2; ++n) {
            const double x =
                static_cast<double>(decode(a[l] >> (8 * n) & 0xffu, E4 ? kE4m3 : kE5m2));
            r |= static_cast<uint32_t>(to_half(positive(x, relu))) << (16 * n);
        }
        d[l] = r;
    }
}

template <class T>
CUDAMOD_INLINE uint32_t clamped(std::int32_t x) {
    using Limits = std::numeric_limits<T>;
    const std::int32_t r = x < Limits::min()   ? Limits::min()
                           : x > Limits::max() ? Limits::max()
                                               : x;
    return static_cast<uint32_t>(r) & ((1u << (8 * sizeof(T))) - 1);
}

template <class T>
struct Pack {
    CUDAMOD_INLINE static uint32_t apply(std::int32_t a, std::int32_t b) {
        return clamped<T>(a) << 16 | clamped<T>(b);
    }
    CUDAMOD_INLINE static uint32_t apply(std::int32_t a, std::int32_t b, uint32_t c) {
        return c << 16 | clamped<T>(a) << 8 | clamped<T>(b);
    }
};

Handler pack(Type type) {
    using std::int16_t, std::int32_t, std::int8_t, std::uint8_t;
    switch (type) {
    case Type::U16:
        return &binary<Pack<uint16_t>, uint32_t, int32_t>;
    case Type::S16:
        return &binary<Pack<int16_t>, uint32_t, int32_t>;
    case Type::U8:
        return &ternary<Pack<uint8_t>, uint32_t, int32_t, int32_t, uint32_t>;
    default:
        return &ternary<Pack<int8_t>, uint32_t, int32_t, int32_t, uint32_t>;
    }
}

uint32_t target_of(Type type) {
    switch (type) {
    case Type::F16:
    case Type::F16x2:
        return kToHalf;
    case Type::BF16:
    case Type::BF16x2:
        return kToBfloat;
    case Type::TF32:
        return kToTf32;
    case Type::E4M3x2:
        return kToE4m3;
    default:
        return kToE5m2;
    }
}

bool is_fp8(Type type) {
    return type == Type::E4M3x2 || type == Type::E5M2x2;
}

} // namespace

Handler select_small_convert(const Form& form) {
    if (form.type() == Type::F32 && form.modifiers.size() == 2) {
        return form.types[1] == Type::F16 ? &unary<HalfToSingle, float, uint16_t>
                                          : Handler{&unary<BfloatToSingle, float, uint16_t>};
    }
    return &convert;
}

Handler select_packed_convert(const Form& form) {
    if (form.has("pack")) return pack(form.type());
    if (is_fp8(form.types[1])) {
        return form.types[1] == Type::E4M3x2 ? &widen_bytes<true> : Handler{&widen_bytes<false>};
    }
    if (form.types[1] == Type::F16x2) return &narrow_halves;
    switch (form.type()) {
    case Type::F16x2:
    case Type::BF16x2:
        return &narrow<true, uint32_t>;
    case Type::E4M3x2:
    case Type::E5M2x2:
        return &narrow<true, uint16_t>;
    case Type::TF32:
        return &narrow<false, uint32_t>;
    default:
        return &narrow<false, uint16_t>;
    }
}

uint32_t convert_settings(const Form& form) {
    const Type to = form.types[0], from = form.types[1];
    const bool packed = form.has("relu") || form.has("satfinite") || is_packed(to) ||
                        is_packed(from) || to == Type::TF32;
    const auto rounding = static_cast<uint32_t>(rounding_of(form));
    if (packed) {
        return target_of(to) | rounding << 8 | (form.has("relu") ? 1u << 16 : 0u) |
               (form.has("satfinite") ? 1u << 17 : 0u);
    }
    const bool integral = form.has("rni") || form.has("rzi") || form.has("rmi") || form.has("rpi");
    const uint32_t flags = (integral ? kIntegral : 0) | (form.has("sat") ? kSaturate : 0);
    return static_cast<uint32_t>(to) | static_cast<uint32_t>(from) << 8 | rounding << 16 |
           flags << 24;
}

} // namespace cudamod::emulator::ptx::ops
