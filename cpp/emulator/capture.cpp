#include "emulator/call.h"
#include "emulator/stream.h"

using namespace cudamod::emulator;

namespace {

thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// No stream of this driver is ever captured.
void answer_not_capturing(CUstream handle, CUstreamCaptureStatus* status) {
    require_pointer(status, "the status");
    find_stream(handle);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace

CUDAMOD_API cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    return locked_call(
        "cuStreamIsCapturing", [&] { answer_not_capturing(handle, status); }, handle, status);
}

CUDAMOD_API cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return locked_call(
        "cuStreamGetCaptureInfo", [&] { answer_not_capturing(handle, status); }, handle, status,
        id);
}

CUDAMOD_API cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                      cuuint64_t* id, CUgraph* graph,
                                      const CUgraphNode** dependencies, size_t* count) {
    return locked_call(
        "cuStreamGetCaptureInfo", [&] { answer_not_capturing(handle, status); }, handle, status, id,
        graph, dependencies, count);
}

CUDAMOD_API cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                      cuuint64_t* id, CUgraph* graph,
                                      const CUgraphNode** dependencies,
                                      const CUgraphEdgeData** edges, size_t* count) {
    return locked_call(
        "cuStreamGetCaptureInfo", [&] { answer_not_capturing(handle, status); }, handle, status, id,
        graph, dependencies, edges, count);
}

CUDAMOD_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return locked_call(
        "cuThreadExchangeStreamCaptureMode",
        [&] {
            require_pointer(mode, "the mode");
            if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
                fail(CUDA_ERROR_INVALID_VALUE, "Capture mode %d is unknown",
                     static_cast<int>(*mode));
            }
            std::swap(*mode, capture_mode);
        },
        mode);
}
