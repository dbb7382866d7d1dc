/// .version and .target: what an image asks of driver and device.
#pragma once

#include "emulator/ptx/syntax.h"
#include "emulator/ptx/token_stream.h"

namespace cudamod::emulator::ptx {

void parse_version(TokenStream& tokens, const Target& device, syntax::Module& module);
void parse_target(TokenStream& tokens, const Target& device, syntax::Module& module);

} // namespace cudamod::emulator::ptx
