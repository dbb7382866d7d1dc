#pragma once

namespace cudamod::emulator {

/// What a function that is not emulated answers: CUDA_ERROR_NOT_SUPPORTED and a sentence, or what
/// any call answers before cuInit.
int refuse(const char* call);

} // namespace cudamod::emulator
