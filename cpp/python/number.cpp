#include "python/number.h"

#include <cmath>
#include <cstring>

namespace cudamod::python {

std::uint16_t round_to_16_bits(double value, int exponent_bits, int fraction_bits, bool& overflow) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    auto sign = static_cast<std::uint16_t>(bits >> 63 << 15);
    const int largest_exponent = (1 << exponent_bits) - 1;
    const auto infinity = static_cast<std::uint16_t>(largest_exponent << fraction_bits);
    overflow = false;
    if (std::isnan(value))
        return static_cast<std::uint16_t>(sign | infinity | 1u << (fraction_bits - 1));
    if (std::isinf(value)) return sign | infinity;
    if (value == 0) return sign;
    const int bias = largest_exponent / 2;
    int exponent;
    std::frexp(value, &exponent); // |value| = 0.1b... * 2^exponent
    int stored = exponent - 1 + bias;
    if (stored < 1) stored = 1; // a subnormal has the smallest exponent
    // Scaling by a power of two is exact, so nearbyint is the only rounding (to nearest even by
    // default).
    double scaled = std::ldexp(std::fabs(value), fraction_bits + bias - stored);
    auto fraction = static_cast<std::uint32_t>(std::nearbyint(scaled));
    // A normal number's hidden bit adds one to the exponent field; so does a carry out of the
    // fraction.
    std::uint32_t encoded = (static_cast<std::uint32_t>(stored - 1) << fraction_bits) + fraction;
    overflow = encoded >= infinity;
    return static_cast<std::uint16_t>(sign | (overflow ? infinity : encoded));
}

} // namespace cudamod::python
