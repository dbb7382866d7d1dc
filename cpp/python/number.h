#pragma once

#include <cstdint>

namespace cudamod::python {

/// IEEE binary16 (`exponent_bits` 5, `fraction_bits` 10) or bfloat16 (8, 7) of a double, rounded
/// once to nearest even. `overflow` is set when a finite value becomes infinite.
std::uint16_t round_to_16_bits(double value, int exponent_bits, int fraction_bits, bool& overflow);

} // namespace cudamod::python
