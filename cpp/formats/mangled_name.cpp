#include "formats/mangled_name.h"

#include "formats/mangled_parser.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace cudamod::formats {
namespace {

using Kind = MangledNode::Kind;

constexpr std::size_t kLongestUnparsed = 1024;
constexpr std::ptrdiff_t kMostBackReferences = 8;

/// The C++ runtime's text. It expands back references without bound, so the caller makes sure that
/// there is one.
std::optional<std::string> runtime_demangle(const std::string& mangled) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
    if (status != 0 || !text) return std::nullopt;
    return std::string(text.get());
}

/// Whether the runtime surely ends soon: few S_ and T_, whose texts would multiply, and no vendor's
/// qualifier (U and a name), on which GCC 12's can loop for ever. Letters inside of identifiers
/// count as well; closures (Ul, Ut) don't.
bool ends_soon(std::string_view mangled) {
    std::ptrdiff_t references = 0;
    for (std::size_t i = 0; i < mangled.size(); ++i) {
        if (mangled[i] == 'S' || mangled[i] == 'T') ++references;
        const char next = i + 1 < mangled.size() ? mangled[i + 1] : '\0';
        if (mangled[i] == 'U' && next != 'l' && next != 't') return false;
    }
    return mangled.size() <= kLongestUnparsed && references <= kMostBackReferences;
}

std::string base_name(const MangledTree& tree) {
    int node = tree.name;
    for (;;) {
        const auto& at = tree[node];
        if (at.kind == Kind::Nested || at.kind == Kind::Local) {
            node = at.second;
        } else if (at.kind == Kind::Template) {
            node = at.first;
        } else {
            return at.text;
        }
    }
}

} // namespace

const char* name(ScalarType type) {
    switch (type) {
    case ScalarType::Bool:
        return "bool";
    case ScalarType::I8:
        return "i8";
    case ScalarType::U8:
        return "u8";
    case ScalarType::I16:
        return "i16";
    case ScalarType::U16:
        return "u16";
    case ScalarType::I32:
        return "i32";
    case ScalarType::U32:
        return "u32";
    case ScalarType::I64:
        return "i64";
    case ScalarType::U64:
        return "u64";
    case ScalarType::I128:
        return "i128";
    case ScalarType::U128:
        return "u128";
    case ScalarType::F16:
        return "f16";
    case ScalarType::BF16:
        return "bf16";
    case ScalarType::F32:
        return "f32";
    case ScalarType::F64:
        return "f64";
    case ScalarType::C64:
        return "c64";
    case ScalarType::C128:
        return "c128";
    case ScalarType::Pointer:
        return "ptr";
    case ScalarType::Struct:
        return "struct";
    case ScalarType::Unknown:
        return "unknown";
    }
    return "unknown";
}

std::optional<MangledName> read_mangled_name(std::string_view mangled) {
    if (!mangled.starts_with("_Z") || mangled.find('\0') != mangled.npos) return std::nullopt;
    MangledName result;
    auto tree = parse_mangled_function(mangled);
    auto own_text = tree ? MangledTypes(*tree).spell_function() : std::nullopt;
    if (!own_text) {
        if (!ends_soon(mangled)) return std::nullopt;
        auto text = runtime_demangle(std::string(mangled));
        if (!text) return std::nullopt;
        result.demangled = std::move(*text);
        return result;
    }
    result.demangled = runtime_demangle(std::string(mangled)).value_or(std::move(*own_text));
    result.base_name = base_name(*tree);
    const bool is_template = (*tree)[tree->name].kind == Kind::Template;
    const int plain = is_template ? (*tree)[tree->name].first : tree->name;
    result.qualified_name = MangledTypes(*tree).spell(plain).value_or("");
    if (is_template) {
        const auto whole = MangledTypes(*tree).spell(tree->name).value_or("");
        result.template_arguments = whole.substr(result.qualified_name.size());
    }
    result.parameter_types = MangledTypes(*tree).parameters();
    return result;
}

} // namespace cudamod::formats
