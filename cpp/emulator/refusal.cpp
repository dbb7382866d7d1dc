#include "emulator/refusal.h"

#include "emulator/call.h"

namespace cudamod::emulator {

int refuse(const char* call) {
    return unlocked_call(call, [&] { fail(CUDA_ERROR_NOT_SUPPORTED, "%s is not emulated", call); });
}

} // namespace cudamod::emulator
