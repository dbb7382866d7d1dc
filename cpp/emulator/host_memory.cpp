#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/memory.h"

using namespace cudamod::emulator;

namespace {

constexpr unsigned kHostAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

void* allocate_pinned(std::size_t bytes, unsigned flags) {
    const auto context = current_context();
    if (!bytes) fail(CUDA_ERROR_INVALID_VALUE, "An allocation of 0 bytes was asked");
    const auto allocation = address_space().allocate_host(bytes, MemoryKind::pinned);
    if (!allocation) fail(CUDA_ERROR_OUT_OF_MEMORY, "The host has no %zu bytes", bytes);
    allocation->context = context;
    allocation->device = context->device;
    allocation->flags = flags;
    return allocation->host;
}

CUdeviceptr mapped_address(const void* host) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(host));
}

/// The host allocation of one of these kinds that begins at the address.
std::shared_ptr<Allocation> find_host(const void* host, MemoryKind kind, CUresult otherwise) {
    current_context();
    const auto allocation = address_space().find(mapped_address(host));
    if (!allocation || allocation->begin != mapped_address(host) || allocation->kind != kind) {
        fail(otherwise, "%p is the begin of no such host memory: %s", host,
             address_space().explain(mapped_address(host)).c_str());
    }
    return allocation;
}

} // namespace

CUDAMOD_API cuMemAllocHost_v2(void** host, size_t bytes) {
    return locked_call(
        "cuMemAllocHost",
        [&] {
            require_pointer(host, "the address");
            *host = allocate_pinned(bytes, CU_MEMHOSTALLOC_DEVICEMAP);
        },
        host, bytes);
}

CUDAMOD_API cuMemHostAlloc(void** host, size_t bytes, unsigned int flags) {
    return locked_call(
        "cuMemHostAlloc",
        [&] {
            require_pointer(host, "the address");
            if (flags & ~kHostAllocFlags)
                fail(CUDA_ERROR_INVALID_VALUE, "Host allocation flags 0x%x are unknown", flags);
            *host = allocate_pinned(bytes, flags);
        },
        host, bytes, flags);
}

CUDAMOD_API cuMemFreeHost(void* host) {
    return unlocked_call(
        "cuMemFreeHost",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto context = current_context();
            if (!host) return;
            find_host(host, MemoryKind::pinned, CUDA_ERROR_INVALID_VALUE);
            lock.unlock();
            drain(context);
            lock.lock();
            address_space().release(find_host(host, MemoryKind::pinned, CUDA_ERROR_INVALID_VALUE));
        },
        host);
}

CUDAMOD_API cuMemHostRegister_v2(void* host, size_t bytes, unsigned int flags) {
    return locked_call(
        "cuMemHostRegister",
        [&] {
            const auto context = current_context();
            if (!host || !bytes)
                fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at %p cannot be registered", bytes, host);
            if (flags & ~kRegisterFlags)
                fail(CUDA_ERROR_INVALID_VALUE, "Registration flags 0x%x are unknown", flags);
            const auto allocation = address_space().register_host(host, bytes);
            if (!allocation)
                fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                     "A part of %zu bytes at %p is registered already", bytes, host);
            allocation->context = context;
            allocation->device = context->device;
            allocation->flags = flags;
            allocation->read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY;
        },
        host, bytes, flags);
}

CUDAMOD_API cuMemHostUnregister(void* host) {
    return unlocked_call(
        "cuMemHostUnregister",
        [&] {
            constexpr CUresult kOtherwise = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
            std::unique_lock lock(driver_mutex());
            const auto context = find_host(host, MemoryKind::registered, kOtherwise)->context;
            lock.unlock();
            drain(context);
            lock.lock();
            address_space().release(find_host(host, MemoryKind::registered, kOtherwise));
        },
        host);
}

CUDAMOD_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* host, unsigned int flags) {
    return locked_call(
        "cuMemHostGetDevicePointer",
        [&] {
            require_pointer(address, "the address");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %u", flags);
            current_context();
            const auto allocation = address_space().find(mapped_address(host));
            if (!allocation || allocation->kind == MemoryKind::device) {
                fail(CUDA_ERROR_INVALID_VALUE, "%p is neither pinned nor registered", host);
            }
            *address = mapped_address(host);
        },
        address, host, flags);
}

CUDAMOD_API cuMemHostGetFlags(unsigned int* flags, void* host) {
    return locked_call(
        "cuMemHostGetFlags",
        [&] {
            require_pointer(flags, "the flags");
            *flags = find_host(host, MemoryKind::pinned, CUDA_ERROR_INVALID_VALUE)->flags;
        },
        flags, host);
}
