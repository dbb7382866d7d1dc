#include "emulator/null_launch.h"

#include "emulator/api.h"

#include <atomic>
#include <cstring>

namespace cudamod::emulator {
namespace {

std::atomic<std::uint64_t> launches{0};

// Entry points of their own, so that neither the ordinary launch nor a null launch pays for the
// other.
CUresult launch_kernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CUstream, void**, void**) {
    launches.fetch_add(1, std::memory_order_relaxed);
    return CUDA_SUCCESS;
}

CUresult launch_kernel_ex(const CUlaunchConfig*, CUfunction, void**, void**) {
    launches.fetch_add(1, std::memory_order_relaxed);
    return CUDA_SUCCESS;
}

// What a library asks of a stream before each launch: a null launch captures nothing either.
CUresult stream_is_capturing(CUstream, CUstreamCaptureStatus* status) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

} // namespace

std::uint64_t null_launches() {
    return launches.load();
}
void count_null_launch() {
    launches.fetch_add(1, std::memory_order_relaxed);
}
void clear_null_launches() {
    launches = 0;
}

void* null_entry_point(const char* symbol) {
    if (std::strcmp(symbol, "cuLaunchKernel") == 0) return reinterpret_cast<void*>(launch_kernel);
    if (std::strcmp(symbol, "cuLaunchKernelEx") == 0)
        return reinterpret_cast<void*>(launch_kernel_ex);
    if (std::strcmp(symbol, "cuStreamIsCapturing") == 0)
        return reinterpret_cast<void*>(stream_is_capturing);
    return nullptr;
}

} // namespace cudamod::emulator
