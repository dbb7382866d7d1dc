#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/memory.h"
#include "emulator/stream.h"
#include "emulator/transfer.h"

using namespace cudamod::emulator;

namespace {

enum class Side { device, host, any };

Span span_of(Side side, std::uint64_t address, std::size_t bytes, const char* what) {
    if (side == Side::host) {
        if (!address) fail(CUDA_ERROR_INVALID_VALUE, "The %s must not be NULL", what);
        return any_span(address, bytes);
    }
    return side == Side::device ? device_span(address, bytes) : any_span(address, bytes);
}

std::uint64_t host_address(const void* host) {
    return reinterpret_cast<std::uintptr_t>(host);
}

struct Copy {
    Side to_side;
    std::uint64_t to;
    Side from_side;
    std::uint64_t from;
    std::size_t bytes;
};

void enqueue(const Copy& copy, CUstream handle, HostOrder order = HostOrder::asynchronous) {
    std::unique_lock lock(driver_mutex());
    const auto stream = find_stream(handle);
    if (!copy.bytes) return;
    if (captures(*stream)) {
        capture_into(*stream,
                     copy_operation(linear_copy(copy.to, copy.from, copy.bytes), stream->context));
        return;
    }
    Transfer transfer;
    transfer.to = {span_of(copy.to_side, copy.to, copy.bytes, "destination"), copy.bytes};
    transfer.from = {span_of(copy.from_side, copy.from, copy.bytes, "source"), copy.bytes};
    transfer.width = copy.bytes;
    lock.unlock();
    enqueue(std::move(transfer), stream, order);
}

void copy_now(const Copy& copy) {
    enqueue(copy, nullptr, HostOrder::synchronous);
}

} // namespace

CUDAMOD_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return unlocked_call(
        "cuMemcpy", [&] { copy_now({Side::any, to, Side::any, from, bytes}); }, to, from, bytes);
}

CUDAMOD_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return unlocked_call(
        "cuMemcpyAsync", [&] { enqueue({Side::any, to, Side::any, from, bytes}, stream); }, to,
        from, bytes, stream);
}

CUDAMOD_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    return unlocked_call(
        "cuMemcpyHtoD",
        [&] { copy_now({Side::device, to, Side::host, host_address(from), bytes}); }, to, from,
        bytes);
}

CUDAMOD_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return unlocked_call(
        "cuMemcpyHtoDAsync",
        [&] { enqueue({Side::device, to, Side::host, host_address(from), bytes}, stream); }, to,
        from, bytes, stream);
}

CUDAMOD_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    return unlocked_call(
        "cuMemcpyDtoH",
        [&] { copy_now({Side::host, host_address(to), Side::device, from, bytes}); }, to, from,
        bytes);
}

CUDAMOD_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return unlocked_call(
        "cuMemcpyDtoHAsync",
        [&] { enqueue({Side::host, host_address(to), Side::device, from, bytes}, stream); }, to,
        from, bytes, stream);
}

CUDAMOD_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return unlocked_call(
        "cuMemcpyDtoD", [&] { copy_now({Side::device, to, Side::device, from, bytes}); }, to, from,
        bytes);
}

CUDAMOD_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return unlocked_call(
        "cuMemcpyDtoDAsync",
        [&] { enqueue({Side::device, to, Side::device, from, bytes}, stream); }, to, from, bytes,
        stream);
}

namespace {

void require_contexts(CUcontext to, CUcontext from) {
    std::lock_guard lock(driver_mutex());
    find_context(to);
    find_context(from);
}

} // namespace

CUDAMOD_API cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, size_t bytes) {
    return unlocked_call(
        "cuMemcpyPeer",
        [&] {
            require_contexts(to_context, from_context);
            copy_now({Side::device, to, Side::device, from, bytes});
        },
        to, to_context, from, from_context, bytes);
}

CUDAMOD_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                              CUcontext from_context, size_t bytes, CUstream stream) {
    return unlocked_call(
        "cuMemcpyPeerAsync",
        [&] {
            require_contexts(to_context, from_context);
            enqueue({Side::device, to, Side::device, from, bytes}, stream);
        },
        to, to_context, from, from_context, bytes, stream);
}
