#pragma once

#include "formats/bytes.h"

#include <string>
#include <string_view>
#include <vector>

namespace cudamod::formats {

/// What a linker input has for one architecture. NVIDIA's linker says of a name that is defined
/// twice on stderr alone, and makes a broken cubin or crashes; of code that is not relocatable it
/// takes nothing, in silence.
struct Definitions {
    /// What it defines for all inputs and none may define again: kernels, functions, variables.
    std::vector<std::string> names;
    /// It has code for the architecture, and nothing of it is relocatable.
    bool whole = false;
};

/// Of a "ptx", "cubin", "fatbin", "object" or "library", for sm_`sm`; nothing of other kinds, and
/// of what can't be read.
Definitions definitions_of(std::string_view kind, Bytes image, int sm);

} // namespace cudamod::formats
