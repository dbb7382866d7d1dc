#pragma once

#include "emulator/api.h"

namespace cudamod::emulator {

/// How the body of an entry point refuses: thrown by fail(), turned into the call's result by
/// call.h. Never leaves the driver.
struct Failure {
    CUresult status;
};

/// Refuses the running call. The sentence goes to the callbacks of cuLogsRegisterCallback.
[[noreturn]] void fail(CUresult status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

/// An out-parameter of the caller.
inline void require_pointer(const void* pointer, const char* what) {
    if (!pointer) fail(CUDA_ERROR_INVALID_VALUE, "The pointer to %s must not be NULL", what);
}

} // namespace cudamod::emulator
