#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/memory.h"
#include "emulator/stream.h"
#include "emulator/transfer.h"

using namespace cudamod::emulator;

namespace {

Transfer::Side rows_of(CUmemorytype type, CUdeviceptr device, const void* host, std::size_t pitch,
                       std::size_t x, std::size_t y, const CUDA_MEMCPY2D& copy, const char* what) {
    if (!pitch) pitch = copy.WidthInBytes + x;
    if (pitch < copy.WidthInBytes + x) {
        fail(CUDA_ERROR_INVALID_VALUE, "The %s pitch %zu is less than %zu bytes", what, pitch,
             copy.WidthInBytes + x);
    }
    const std::size_t bytes = (copy.Height - 1) * pitch + copy.WidthInBytes;
    const std::size_t first = y * pitch + x;
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return {any_span(reinterpret_cast<std::uintptr_t>(host) + first, bytes), pitch};
    case CU_MEMORYTYPE_DEVICE:
        return {device_span(device + first, bytes), pitch};
    case CU_MEMORYTYPE_UNIFIED:
        return {any_span(device + first, bytes), pitch};
    default:
        fail(CUDA_ERROR_NOT_SUPPORTED, "The %s is an array, which is not emulated", what);
    }
}

CUDA_MEMCPY3D as_3d(const CUDA_MEMCPY2D& copy) {
    CUDA_MEMCPY3D box{};
    box.srcXInBytes = copy.srcXInBytes;
    box.srcY = copy.srcY;
    box.srcMemoryType = copy.srcMemoryType;
    box.srcHost = copy.srcHost;
    box.srcDevice = copy.srcDevice;
    box.srcArray = copy.srcArray;
    box.srcPitch = copy.srcPitch;
    box.dstXInBytes = copy.dstXInBytes;
    box.dstY = copy.dstY;
    box.dstMemoryType = copy.dstMemoryType;
    box.dstHost = copy.dstHost;
    box.dstDevice = copy.dstDevice;
    box.dstArray = copy.dstArray;
    box.dstPitch = copy.dstPitch;
    box.WidthInBytes = copy.WidthInBytes;
    box.Height = copy.Height;
    box.Depth = 1;
    return box;
}

void enqueue(const CUDA_MEMCPY2D* copy, CUstream handle, HostOrder order) {
    require_pointer(copy, "the parameters");
    std::unique_lock lock(driver_mutex());
    const auto stream = find_stream(handle);
    if (!copy->WidthInBytes || !copy->Height) return;
    if (captures(*stream)) {
        capture_into(*stream, copy_operation(as_3d(*copy), stream->context));
        return;
    }
    Transfer transfer;
    transfer.to = rows_of(copy->dstMemoryType, copy->dstDevice, copy->dstHost, copy->dstPitch,
                          copy->dstXInBytes, copy->dstY, *copy, "destination");
    transfer.from = rows_of(copy->srcMemoryType, copy->srcDevice, copy->srcHost, copy->srcPitch,
                            copy->srcXInBytes, copy->srcY, *copy, "source");
    transfer.width = copy->WidthInBytes;
    transfer.height = copy->Height;
    lock.unlock();
    enqueue(std::move(transfer), stream, order);
}

void copy_now(const CUDA_MEMCPY2D* copy) {
    enqueue(copy, nullptr, HostOrder::synchronous);
}

} // namespace

CUDAMOD_API cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
    return unlocked_call("cuMemcpy2D", [&] { copy_now(copy); }, copy);
}

CUDAMOD_API cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
    return unlocked_call("cuMemcpy2DUnaligned", [&] { copy_now(copy); }, copy);
}

CUDAMOD_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return unlocked_call(
        "cuMemcpy2DAsync", [&] { enqueue(copy, stream, HostOrder::asynchronous); }, copy, stream);
}
