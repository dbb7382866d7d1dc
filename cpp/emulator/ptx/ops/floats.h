/// Floating-point helpers: flushing, canonical NaN, and rounding to formats that C++ lacks.
#pragma once

#include "emulator/ptx/ops/lanes.h"

#include <bit>
#include <cfenv>

namespace cudamod::emulator::ptx::ops {

enum class Rounding : std::uint8_t { Nearest, Zero, Down, Up, NearestAway };

namespace {

constexpr std::uint32_t kCanonicalNan = 0x7fffffff;

CUDAMOD_INLINE float single(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}
CUDAMOD_INLINE std::uint32_t bits(float x) {
    return std::bit_cast<std::uint32_t>(x);
}
CUDAMOD_INLINE std::uint64_t bits(double x) {
    return std::bit_cast<std::uint64_t>(x);
}

/// Denormals become zeros of their sign.
CUDAMOD_INLINE float flushed(float x) {
    return (bits(x) & 0x7f800000) == 0 ? single(bits(x) & 0x80000000) : x;
}

template <bool Ftz>
CUDAMOD_INLINE float in(float x) {
    return Ftz ? flushed(x) : x;
}

/// The result of a single-precision operation: one NaN only; flushed; saturated to [0, 1].
template <bool Ftz, bool Sat = false>
CUDAMOD_INLINE float out(float x) {
    if (Sat) {
        x = x > 0.0f ? x : 0.0f; // NaN and -0 too
        x = x < 1.0f ? x : 1.0f;
    } else {
        x = x != x ? single(kCanonicalNan) : x;
    }
    return Ftz ? flushed(x) : x;
}

/// A quiet NaN keeps its payload and sign.
CUDAMOD_INLINE double quieted(double x) {
    return std::bit_cast<double>(bits(x) | 0x0008000000000000);
}

/// Double precision hands a NaN operand on; the card asks the last factor, then the addend, then
/// the first.
CUDAMOD_INLINE double handed_on(double r, double a, double b) {
    r = a != a ? quieted(a) : r;
    return b != b ? quieted(b) : r;
}

inline Rounding rounding_of(const Form& form, Rounding otherwise = Rounding::Nearest) {
    if (form.has("rn") || form.has("rni")) return Rounding::Nearest;
    if (form.has("rz") || form.has("rzi")) return Rounding::Zero;
    if (form.has("rm") || form.has("rmi")) return Rounding::Down;
    if (form.has("rp") || form.has("rpi")) return Rounding::Up;
    if (form.has("rna")) return Rounding::NearestAway;
    return otherwise;
}

/// A handler under one of the host's rounding modes.
template <int Mode, Handler H>
void rounded(Warp& w, const Instruction& i, std::uint32_t mask) {
    std::fesetround(Mode);
    H(w, i, mask);
    std::fesetround(FE_TONEAREST);
}

template <Handler H>
Handler with_rounding(Rounding rounding) {
    switch (rounding) {
    case Rounding::Zero:
        return &rounded<FE_TOWARDZERO, H>;
    case Rounding::Down:
        return &rounded<FE_DOWNWARD, H>;
    case Rounding::Up:
        return &rounded<FE_UPWARD, H>;
    default:
        return H;
    }
}

/// A binary format of at most 32 bits with IEEE-like layout.
struct Format {
    int mantissa, exponent; ///< bits
    bool finite_only;       ///< no infinity: e4m3
    CUDAMOD_INLINE constexpr int bias() const { return (1 << (exponent - 1)) - 1; }
};
constexpr Format kHalf{10, 5, false}, kBfloat{7, 8, false}, kTf32{10, 8, false}, kE4m3{3, 4, true},
    kE5m2{2, 5, false};

/// `x` in the format, as bits. Overflow gives infinity (the largest finite value when the rounding
/// goes the other way, when `saturate`, or when there is no infinity). NaN gives `nan`.
CUDAMOD_INLINE std::uint32_t encode(double x, const Format format, Rounding rounding, bool saturate,
                                    std::uint32_t nan) {
    const std::uint64_t b = bits(x);
    const std::uint32_t sign = b >> 63 != 0 ? 1u << (format.mantissa + format.exponent) : 0u;
    const std::uint32_t infinity = ((1u << format.exponent) - 1) << format.mantissa;
    const std::uint32_t largest =
        format.finite_only ? (1u << (format.mantissa + format.exponent)) - 2 : infinity - 1;
    if (x != x) return nan;
    const auto biased = static_cast<int>(b >> 52 & 0x7ff);
    if (biased == 0x7ff) return sign | (saturate || format.finite_only ? largest : infinity);
    if ((b & 0x7fffffffffffffff) == 0) return sign;
    // x = significand * 2^scale; the result counts units of 2^unit.
    std::uint64_t significand = b & 0xfffffffffffff;
    if (biased != 0) significand |= std::uint64_t{1} << 52;
    const int scale = (biased == 0 ? 1 : biased) - 1075;
    const int exponent = scale + 63 - std::countl_zero(significand);
    const int smallest = 1 - format.bias();
    const int unit = (exponent < smallest ? smallest : exponent) - format.mantissa;
    const int shift = unit - scale;
    std::uint64_t kept = 0, rest = 0, half = 1;
    if (shift <= 0) {
        kept = significand << -shift;
    } else if (shift < 64) {
        kept = significand >> shift;
        rest = significand & ((std::uint64_t{1} << shift) - 1);
        half = std::uint64_t{1} << (shift - 1);
    } else {
        rest = 1;
        half = 2;
    }
    bool up = false;
    switch (rounding) {
    case Rounding::Nearest:
        up = rest > half || (rest == half && (kept & 1) != 0);
        break;
    case Rounding::NearestAway:
        up = rest >= half;
        break;
    case Rounding::Zero:
        break;
    case Rounding::Down:
        up = rest != 0 && sign != 0;
        break;
    case Rounding::Up:
        up = rest != 0 && sign == 0;
        break;
    }
    kept += up ? 1 : 0;
    const std::uint64_t base = exponent < smallest ? 0
                                                   : static_cast<std::uint64_t>(exponent - smallest)
                                                         << format.mantissa;
    const std::uint64_t result = base + kept;
    const std::uint64_t limit = format.finite_only ? largest + 1 : infinity;
    if (result >= limit) {
        const bool away = rounding == Rounding::Nearest || rounding == Rounding::NearestAway ||
                          (rounding == Rounding::Up && sign == 0) ||
                          (rounding == Rounding::Down && sign != 0);
        return sign | (saturate || format.finite_only || !away ? largest : infinity);
    }
    return sign | static_cast<std::uint32_t>(result);
}

CUDAMOD_INLINE float decode(std::uint32_t value, const Format format) {
    const std::uint32_t mantissa = value & ((1u << format.mantissa) - 1);
    const auto exponent =
        static_cast<int>(value >> format.mantissa & ((1u << format.exponent) - 1));
    const bool negative = (value >> (format.mantissa + format.exponent) & 1) != 0;
    const int top = (1 << format.exponent) - 1;
    if (format.finite_only ? exponent == top && mantissa == (1u << format.mantissa) - 1
                           : exponent == top && mantissa != 0) {
        return single(kCanonicalNan);
    }
    if (!format.finite_only && exponent == top) return single(negative ? 0xff800000 : 0x7f800000);
    const std::uint32_t significand = exponent == 0 ? mantissa : mantissa | 1u << format.mantissa;
    const int scale = (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa;
    // 2^scale is normal in double for every format here.
    const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(scale + 1023) << 52);
    const double result = static_cast<double>(significand) * unit;
    return static_cast<float>(negative ? -result : result);
}

/// a * b + c rounded to odd: a later rounding to a narrow format sees the right side of every tie.
/// The product must be exact.
CUDAMOD_INLINE double fused_to_odd(double a, double b, double c) {
    const double product = a * b;
    const double sum = product + c;
    const double second = sum - product;
    const double error = (product - (sum - second)) + (c - second);
    const std::uint64_t s = bits(sum);
    const bool inexact = error != 0 && error == error;
    const std::uint64_t odd = (error > 0) == (sum > 0) ? s + 1 : s - 1;
    return std::bit_cast<double>(inexact && (s & 1) == 0 ? odd : s);
}

CUDAMOD_INLINE float half_value(std::uint16_t x) {
    return decode(x, kHalf);
}
CUDAMOD_INLINE float bfloat_value(std::uint16_t x) {
    return single(static_cast<std::uint32_t>(x) << 16);
}
CUDAMOD_INLINE std::uint16_t to_half(double x, Rounding rounding = Rounding::Nearest,
                                     bool saturate = false) {
    return static_cast<std::uint16_t>(encode(x, kHalf, rounding, saturate, 0x7fff));
}
CUDAMOD_INLINE std::uint16_t to_bfloat(double x, Rounding rounding = Rounding::Nearest,
                                       bool saturate = false) {
    return static_cast<std::uint16_t>(encode(x, kBfloat, rounding, saturate, 0x7fff));
}

} // namespace
} // namespace cudamod::emulator::ptx::ops
