#pragma once

#include "formats/bytes.h"

#include <string>
#include <string_view>

namespace cudamod::formats {

/// Why an image is not whole, or an empty text. NVIDIA's linkers and libNVVM trust the tables of
/// what they are given: they crash on a truncated cubin, and loop for ever on a truncated fatbin.
/// What is checked is that tables, sections, symbols, relocations, entries and blocks lie inside
/// the image and lead somewhere; damage inside a section's content is not seen.
///
/// `kind` is "cubin", "object", "library", "fatbin" or "nvvm" (bitcode; its text form is always
/// whole); images of other kinds have no tables that we know.
std::string damage_of(std::string_view kind, Bytes image);

} // namespace cudamod::formats
