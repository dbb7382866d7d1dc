/// Tokens to syntax. Strict: directives that are not known are refused.
#pragma once

#include "emulator/ptx/syntax.h"

namespace cudamod::emulator::ptx {

/// Throws LoadError. `source` must outlive the module. `device` limits .version and .target.
syntax::Module parse(std::string_view source, const Target& device);

} // namespace cudamod::emulator::ptx
