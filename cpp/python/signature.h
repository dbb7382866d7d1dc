#pragma once

#include "launch/layout.h"
#include "python/instance.h"

#include <optional>
#include <string>
#include <vector>

namespace cudamod::python {

/// The types of a signature: a text such as "f32, ptr, u64", or a sequence of such names, NumPy
/// dtypes and ctypes types. Raises ValueError for an unknown type, TypeError for what is no
/// signature.
std::vector<launch::Type> signature_types(nb::handle signature);

/// The text of a layout's types, as `bind` takes it; none when the type of a parameter is not
/// known.
std::optional<std::string> signature_text(const launch::Layout& layout);

} // namespace cudamod::python
