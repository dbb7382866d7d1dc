#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/memory.h"
#include "emulator/stream.h"
#include "emulator/transfer.h"

#include <cstring>

using namespace cudamod::emulator;

namespace {

template <class Element>
void fill_row(std::byte* at, Element value, std::size_t count) {
    for (std::size_t index = 0; index < count; ++index)
        std::memcpy(at + index * sizeof value, &value, sizeof value);
}

/// `height` rows of `width` elements, `pitch` bytes apart.
template <class Element>
void enqueue(CUdeviceptr address, std::size_t pitch, Element value, std::size_t width,
             std::size_t height, CUstream handle) {
    std::unique_lock lock(driver_mutex());
    const auto stream = find_stream(handle);
    if (!width || !height) return;
    if (address % sizeof value || (height > 1 && pitch % sizeof value)) {
        fail(CUDA_ERROR_INVALID_VALUE, "Address 0x%llx or pitch %zu is no multiple of %zu", address,
             pitch, sizeof value);
    }
    if (captures(*stream)) {
        capture_into(*stream, fill_operation({address, pitch, value, sizeof value, width, height},
                                             stream->context));
        return;
    }
    const std::size_t row = width * sizeof value;
    if (width > SIZE_MAX / sizeof value || (height > 1 && pitch < row)) {
        fail(CUDA_ERROR_INVALID_VALUE, "Rows of %zu elements do not fit a pitch of %zu bytes",
             width, pitch);
    }
    const Span span = device_span(address, (height - 1) * pitch + row);
    lock.unlock();
    const auto fill = [=, context = stream->context] {
        if (!require_live(span, *context, "A fill")) return;
        for (std::size_t y = 0; y < height; ++y) {
            fill_row(span.host + y * pitch, value, width);
            note_written(span.allocation.get(), span.host + y * pitch, row);
        }
    };
    stream->enqueue(fill, "fill");
    if (span.allocation->kind == MemoryKind::device) return;
    stream->wait();
    lock.lock();
    require_healthy(*stream->context);
}

} // namespace

// Fills are asynchronous to the host even in the calls without a stream, those of memory that the
// host can see excepted.
#define CUDAMOD_FILL(bits, element)                                                                \
    CUDAMOD_API cuMemsetD##bits##_v2(CUdeviceptr address, element value, size_t count) {           \
        return unlocked_call(                                                                      \
            "cuMemsetD" #bits, [&] { enqueue<element>(address, 0, value, count, 1, nullptr); },    \
            address, value, count);                                                                \
    }                                                                                              \
    CUDAMOD_API cuMemsetD##bits##Async(CUdeviceptr address, element value, size_t count,           \
                                       CUstream stream) {                                          \
        return unlocked_call(                                                                      \
            "cuMemsetD" #bits "Async",                                                             \
            [&] { enqueue<element>(address, 0, value, count, 1, stream); }, address, value, count, \
            stream);                                                                               \
    }                                                                                              \
    CUDAMOD_API cuMemsetD2D##bits##_v2(CUdeviceptr address, size_t pitch, element value,           \
                                       size_t width, size_t height) {                              \
        return unlocked_call(                                                                      \
            "cuMemsetD2D" #bits,                                                                   \
            [&] { enqueue<element>(address, pitch, value, width, height, nullptr); }, address,     \
            pitch, value, width, height);                                                          \
    }                                                                                              \
    CUDAMOD_API cuMemsetD2D##bits##Async(CUdeviceptr address, size_t pitch, element value,         \
                                         size_t width, size_t height, CUstream stream) {           \
        return unlocked_call(                                                                      \
            "cuMemsetD2D" #bits "Async",                                                           \
            [&] { enqueue<element>(address, pitch, value, width, height, stream); }, address,      \
            pitch, value, width, height, stream);                                                  \
    }

CUDAMOD_FILL(8, unsigned char)
CUDAMOD_FILL(16, unsigned short)
CUDAMOD_FILL(32, unsigned int)
