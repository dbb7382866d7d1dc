#pragma once

#include "formats/mangled_types.h"

#include <optional>
#include <string_view>

namespace cudamod::formats {

/// Parses "_Z" and one function encoding of the Itanium C++ ABI. Knows names, types, template
/// arguments, literals, packs, closures and local names; of expressions the address of a function
/// alone. Nothing for anything else, for variables and special names, and for text left over.
std::optional<MangledTree> parse_mangled_function(std::string_view mangled);

} // namespace cudamod::formats
