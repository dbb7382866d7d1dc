#pragma once

#include "driver/table.h"
#include "handles/context.h"
#include "handles/library.h"
#include "handles/stream.h"
#include "launch/config.h"
#include "launch/kernel.h"

#include <cuda.h>

namespace cudamod::launch {

/// The context rules of a launch into a default stream, which the driver resolves by what is
/// current: another context's is changed for the call, and a thread that has none keeps the
/// stream's afterwards, as it does with every other stream.
class DefaultStreamScope {
  public:
    CUresult enter(const handles::StreamBox& stream) noexcept {
        CUcontext current = nullptr;
        CUresult status = driver::table.cuCtxGetCurrent(&current);
        if (status != CUDA_SUCCESS || current == stream.context) return status;
        if (!current) return driver::table.cuCtxSetCurrent(stream.context);
        status = driver::table.cuCtxPushCurrent(stream.context);
        pushed_ = status == CUDA_SUCCESS;
        return status;
    }
    ~DefaultStreamScope() {
        if (pushed_) handles::pop_context();
    }

  private:
    bool pushed_ = false;
};

/// True when the stream captures into a graph, which then has to keep the kernel's library. The
/// legacy stream can't be captured.
inline bool is_capturing(CUstream stream) noexcept {
    if (stream == CU_STREAM_LEGACY) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver::table.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/// The launch itself, with a configuration whose stream is `stream`. `parameters`: the address of
/// each argument, or null without any.
inline CUresult call(const CUlaunchConfig& config, const handles::StreamBox& stream,
                     CUkernel kernel, void** parameters) noexcept {
    CUfunction function = reinterpret_cast<CUfunction>(kernel);
    if (!stream.is_default)
        return driver::table.cuLaunchKernelEx(&config, function, parameters, nullptr);
    DefaultStreamScope scope;
    if (CUresult status = scope.enter(stream); status != CUDA_SUCCESS) return status;
    return driver::table.cuLaunchKernelEx(&config, function, parameters, nullptr);
}

/// The same with a copy of a configuration that other streams share.
inline CUresult call(const Config& config, const handles::StreamBox& stream, CUkernel kernel,
                     void** parameters) noexcept {
    Config::Native native;
    config.copy_to(native, stream.raw);
    return call(native.config, stream, kernel, parameters);
}

} // namespace cudamod::launch
