#pragma once

#include "formats/ptx_header.h"
#include "launch/type.h"

#include <optional>
#include <string_view>
#include <vector>

namespace cudamod::launch {

/// What an entry of a PTX text says of its parameters: class and size, but no sign.
std::vector<Type> types_of_entry(const formats::PtxEntry& entry);

/// The types that are known without asking: exact ones from the mangled name, where it has any, and
/// for the rest those of the PTX entry. The PTX counts where the two contradict each other. None
/// when neither says anything.
std::optional<std::vector<Type>> infer_types(std::string_view kernel,
                                             const formats::PtxEntry* entry);

} // namespace cudamod::launch
