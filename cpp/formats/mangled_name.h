#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudamod::formats {

enum class ScalarType {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    I128,
    U128,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
    Pointer, ///< also references and std::nullptr_t
    Struct,  ///< a class, union or enumeration by value: a mangled name doesn't say which, nor its
             ///< size
    Unknown, ///< understood as one parameter, but of no type in this list (a closure, long double,
             ///< a member pointer)
};

/// "i32", "f16", "ptr", ...: the names that signatures use; "struct" and "unknown" else.
const char* name(ScalarType type);

struct ParameterType {
    ScalarType type;
    std::string text; ///< C++ spelling, template parameters resolved: "float const*",
                      ///< "ns::Pair<int, float>"
};

struct MangledName {
    std::string demangled;      ///< whole text as the C++ runtime gives it; the mangled name itself
                                ///< where it gives none
    std::string base_name;      ///< "axpy"
    std::string qualified_name; ///< "ns::axpy"
    std::string template_arguments; ///< "<float, 4>", or empty
    /// Exact types of the parameters; nothing when any part of the name isn't understood.
    std::optional<std::vector<ParameterType>> parameter_types;
};

/// Reads an Itanium mangled function name. Nothing for a name that isn't one: extern "C" names,
/// variables, garbage. Where only the runtime's demangler understands the name, there is
/// `demangled` alone.
std::optional<MangledName> read_mangled_name(std::string_view mangled);

} // namespace cudamod::formats
