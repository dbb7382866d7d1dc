/// PTX's fundamental and packed types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cudamod::emulator::ptx {

enum class Type : std::uint8_t {
    None,
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F64,
    U16x2,
    S16x2,
    F32x2,
    TF32,
    E4M3x2,
    E5M2x2,
    E4M3,
    E5M2,
    S4,
    U4,
    B1,
};

/// "u32" -> U32. The name comes without the dot.
std::optional<Type> type_named(std::string_view name);
std::string_view name_of(Type type);

/// Bytes of a value; 0 for Pred, None and types of less than a byte.
unsigned size_of(Type type);
unsigned bits_of(Type type); ///< of an element of a matrix
bool is_signed(Type type);
bool is_integer(Type type); ///< u*, s* of one element
bool is_float(Type type);   ///< scalar floats
bool is_bits(Type type);    ///< b*
bool is_packed(Type type);  ///< two elements in one register

/// May be the type of a declared variable or register.
bool is_fundamental(Type type);

/// b8..b128 of that many bytes.
Type bits_of_size(unsigned bytes);

/// The integer type of twice the width (the result of mul.wide).
Type widened(Type type);

} // namespace cudamod::emulator::ptx
