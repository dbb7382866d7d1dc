#pragma once

#include "formats/mangled_name.h"

#include <string_view>

namespace cudamod::formats {

/// A fundamental type of the Itanium ABI, on a Linux host of 64 bits.
struct MangledBuiltin {
    std::string_view code;
    std::string_view spelling;
    ScalarType type;
    std::string_view literal_suffix = {}; ///< what follows a literal of this type in C++
};

inline constexpr MangledBuiltin kMangledBuiltins[] = {
    {"v", "void", ScalarType::Unknown},
    {"w", "wchar_t", ScalarType::I32},
    {"b", "bool", ScalarType::Bool},
    {"c", "char", ScalarType::I8},
    {"a", "signed char", ScalarType::I8},
    {"h", "unsigned char", ScalarType::U8},
    {"s", "short", ScalarType::I16},
    {"t", "unsigned short", ScalarType::U16},
    {"i", "int", ScalarType::I32},
    {"j", "unsigned int", ScalarType::U32, "u"},
    {"l", "long", ScalarType::I64, "l"},
    {"m", "unsigned long", ScalarType::U64, "ul"},
    {"x", "long long", ScalarType::I64, "ll"},
    {"y", "unsigned long long", ScalarType::U64, "ull"},
    {"n", "__int128", ScalarType::I128},
    {"o", "unsigned __int128", ScalarType::U128},
    {"f", "float", ScalarType::F32},
    {"d", "double", ScalarType::F64},
    {"e", "long double", ScalarType::Unknown},
    {"g", "__float128", ScalarType::Unknown},
    {"z", "...", ScalarType::Unknown},
    {"Dh", "half", ScalarType::F16},
    {"DF16_", "_Float16", ScalarType::F16},
    {"DF16b", "std::bfloat16_t", ScalarType::BF16},
    {"Di", "char32_t", ScalarType::U32},
    {"Ds", "char16_t", ScalarType::U16},
    {"Du", "char8_t", ScalarType::U8},
    {"Dn", "decltype(nullptr)", ScalarType::Pointer},
    {"Dd", "decimal64", ScalarType::Unknown},
    {"De", "decimal128", ScalarType::Unknown},
    {"Df", "decimal32", ScalarType::Unknown},
};

} // namespace cudamod::formats
