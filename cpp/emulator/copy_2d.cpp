#include "emulator/call.h"
#include "emulator/memory.h"
#include "emulator/stream.h"

#include <cstring>

using namespace cudamod::emulator;

namespace {

/// One side of a rectangle: its first byte and the distance of its rows.
struct Rows {
    Span span;
    std::size_t pitch;
};

Rows rows_of(CUmemorytype type, CUdeviceptr device, const void* host, std::size_t pitch,
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

std::shared_ptr<Stream> enqueue(const CUDA_MEMCPY2D* copy, CUstream handle) {
    require_pointer(copy, "the parameters");
    std::unique_lock lock(driver_mutex());
    auto stream = find_stream(handle);
    if (!copy->WidthInBytes || !copy->Height) return stream;
    const Rows to = rows_of(copy->dstMemoryType, copy->dstDevice, copy->dstHost, copy->dstPitch,
                            copy->dstXInBytes, copy->dstY, *copy, "destination");
    const Rows from = rows_of(copy->srcMemoryType, copy->srcDevice, copy->srcHost, copy->srcPitch,
                              copy->srcXInBytes, copy->srcY, *copy, "source");
    lock.unlock();
    stream->enqueue([to, from, width = copy->WidthInBytes, height = copy->Height] {
        for (std::size_t row = 0; row < height; ++row) {
            std::byte* const target = to.span.host + row * to.pitch;
            const std::byte* const source = from.span.host + row * from.pitch;
            std::memmove(target, source, width);
            note_copied(to.span.allocation.get(), target, from.span.allocation.get(), source,
                        width);
        }
    });
    return stream;
}

void copy_now(const CUDA_MEMCPY2D* copy) {
    const auto stream = enqueue(copy, nullptr);
    stream->wait();
    std::lock_guard lock(driver_mutex());
    notice_fault(*stream->context);
}

} // namespace

CUDAMOD_API cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
    return unlocked_call("cuMemcpy2D", [&] { copy_now(copy); }, copy);
}

CUDAMOD_API cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
    return unlocked_call("cuMemcpy2DUnaligned", [&] { copy_now(copy); }, copy);
}

CUDAMOD_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return unlocked_call("cuMemcpy2DAsync", [&] { enqueue(copy, stream); }, copy, stream);
}
