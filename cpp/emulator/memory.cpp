#include "emulator/memory.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/pool.h"

namespace cudamod::emulator {

std::shared_ptr<Allocation> allocate(const std::shared_ptr<Context>& context, std::size_t bytes,
                                     std::size_t alignment) {
    if (!bytes) fail(CUDA_ERROR_INVALID_VALUE, "An allocation of 0 bytes was asked");
    auto allocation = address_space().allocate_device(*context->device, bytes, alignment);
    if (!allocation) {
        fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked, %zu of %zu free", bytes,
             context->device->total_bytes - context->device->used_bytes,
             context->device->total_bytes);
    }
    allocation->context = context;
    allocation->written = WrittenMap::make(bytes);
    return allocation;
}

std::shared_ptr<Allocation> find_allocation(CUdeviceptr address) {
    auto allocation = address_space().find(address);
    if (!allocation || allocation->begin != address) {
        fail(CUDA_ERROR_INVALID_VALUE, "No allocation begins at this address: %s",
             address_space().explain(address).c_str());
    }
    if (allocation->backing)
        fail(CUDA_ERROR_INVALID_VALUE, "The memory at 0x%llx was mapped: cuMemUnmap ends that",
             address);
    if (allocation->freeing)
        fail(CUDA_ERROR_INVALID_VALUE, "The memory at 0x%llx was freed in a stream already",
             address);
    return allocation;
}

Span device_span(CUdeviceptr address, std::size_t bytes) {
    const auto allocation = address_space().find(address, bytes);
    if (!allocation) {
        const auto begun = address_space().find(address);
        fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are not device memory: %s", bytes,
             address, address_space().explain(begun ? begun->end() : address).c_str());
    }
    return {allocation, allocation->at(address)};
}

Span any_span(std::uint64_t address, std::size_t bytes) {
    if (const auto allocation = address_space().find(address, bytes))
        return {allocation, allocation->at(address)};
    if (address_space().reserved(address) || address < 4096) return device_span(address, bytes);
    return {nullptr, reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address))};
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

CUDAMOD_API cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    return locked_call(
        "cuMemAlloc",
        [&] {
            require_pointer(address, "the address");
            *address = allocate(current_context(), bytes)->begin;
        },
        address, bytes);
}

CUDAMOD_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                               unsigned int element) {
    return locked_call(
        "cuMemAllocPitch",
        [&] {
            require_pointer(address, "the address");
            require_pointer(pitch, "the pitch");
            if (element != 4 && element != 8 && element != 16) {
                fail(CUDA_ERROR_INVALID_VALUE, "An element has 4, 8 or 16 bytes, not %u", element);
            }
            const std::size_t rounded = (width + 511) / 512 * 512;
            *address = allocate(current_context(), rounded * height)->begin;
            *pitch = rounded;
        },
        address, pitch, width, height, element);
}

CUDAMOD_API cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
    return locked_call(
        "cuMemAllocManaged",
        [&] {
            require_pointer(address, "the address");
            if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
                fail(CUDA_ERROR_INVALID_VALUE, "Attach flags 0x%x are unknown", flags);
            }
            if (!bytes) fail(CUDA_ERROR_INVALID_VALUE, "An allocation of 0 bytes was asked");
            const auto context = current_context();
            const auto allocation = address_space().allocate_host(bytes, MemoryKind::managed);
            if (!allocation) fail(CUDA_ERROR_OUT_OF_MEMORY, "The host has no %zu bytes", bytes);
            allocation->context = context;
            allocation->device = context->device;
            *address = allocation->begin;
        },
        address, bytes, flags);
}

CUDAMOD_API cuMemFree_v2(CUdeviceptr address) {
    return unlocked_call(
        "cuMemFree",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto context = current_context();
            if (!address) return;
            const auto allocation = find_allocation(address);
            if (allocation->kind != MemoryKind::device && allocation->kind != MemoryKind::managed) {
                fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is host memory", address);
            }
            if (!allocation->variable.empty()) {
                fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is the variable '%s' of a module", address,
                     allocation->variable.c_str());
            }
            // Freeing waits for whatever the device still does.
            lock.unlock();
            drain(allocation->context ? allocation->context : context);
            lock.lock();
            require_healthy(*context);
            if (find_allocation(address) != allocation)
                fail(CUDA_ERROR_INVALID_VALUE, "Another thread freed the memory at 0x%llx",
                     address);
            if (allocation->pool)
                release_to_pool(allocation);
            else
                address_space().release(allocation);
        },
        address);
}

CUDAMOD_API cuMemGetInfo_v2(size_t* free, size_t* total) {
    return locked_call(
        "cuMemGetInfo",
        [&] {
            const Device& device = *current_context()->device;
            if (free) *free = device.total_bytes - device.used_bytes;
            if (total) *total = device.total_bytes;
        },
        free, total);
}

CUDAMOD_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
    return locked_call(
        "cuMemGetAddressRange",
        [&] {
            current_context();
            const auto allocation = address_space().find(address);
            if (!allocation)
                fail(CUDA_ERROR_NOT_FOUND, "%s", address_space().explain(address).c_str());
            if (base) *base = allocation->begin;
            if (bytes) *bytes = allocation->bytes;
        },
        base, bytes, address);
}

namespace {

void require_managed(CUdeviceptr address, std::size_t bytes) {
    current_context();
    const auto allocation = address_space().find(address, bytes);
    if (!allocation || allocation->kind != MemoryKind::managed) {
        fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are not managed memory", bytes,
             address);
    }
}

} // namespace

CUDAMOD_API cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation,
                                  unsigned int flags, CUstream stream) {
    return locked_call(
        "cuMemPrefetchAsync", [&] { require_managed(address, bytes); }, address, bytes, flags,
        stream);
}

CUDAMOD_API cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation) {
    return locked_call(
        "cuMemAdvise", [&] { require_managed(address, bytes); }, address, bytes,
        static_cast<int>(advice));
}

// The older two, which name a device instead of a location; from CUDA 13 on the header does not
// declare them.
CUDAMOD_API cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device,
                               CUstream stream) {
    return locked_call(
        "cuMemPrefetchAsync", [&] { require_managed(address, bytes); }, address, bytes, device,
        stream);
}

CUDAMOD_API cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
    return locked_call(
        "cuMemAdvise", [&] { require_managed(address, bytes); }, address, bytes,
        static_cast<int>(advice), device);
}
