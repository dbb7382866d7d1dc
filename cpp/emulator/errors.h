#pragma once

#include "emulator/api.h"

namespace cudamod::emulator {

/// "CUDA_ERROR_INVALID_VALUE", or "unrecognized error code".
const char* error_name(CUresult status);

/// One sentence about the status, or null when it is none of CUDA's.
const char* error_sentence(CUresult status);

} // namespace cudamod::emulator
