#pragma once

#include "emulator/api.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cudamod::emulator {

/// PTX modules that become one image.
struct Link {
    std::vector<std::string> modules; ///< PTX texts
    std::vector<CUjit_option> options;
    std::vector<void*> values;      ///< as they were when the link was created
    void** caller_values = nullptr; ///< where sizes of logs are reported; the caller keeps it
    std::optional<std::string> image;
};

/// One PTX text of several: the newest of their versions, the first one's target, then their
/// declarations in order. Throws ptx::LoadError for a text without the header that PTX begins with.
std::string joined(const std::vector<std::string>& modules);

} // namespace cudamod::emulator
