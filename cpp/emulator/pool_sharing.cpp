#include "emulator/address_space.h"
#include "emulator/call.h"
#include "emulator/device.h"
#include "emulator/memory.h"
#include "emulator/objects.h"
#include "emulator/pool.h"
#include "emulator/shared_area.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>

using namespace cudamod::emulator;

namespace {

/// What an exported pointer is: written by one process of this driver, read by another.
struct Exported {
    std::uint64_t pool[2];
    std::uint64_t offset;
    std::uint64_t bytes;
};
static_assert(sizeof(Exported) <= sizeof(CUmemPoolPtrExportData));

void require_file_type(CUmemAllocationHandleType type, unsigned long long flags) {
    if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %llu", flags);
    if (type == CU_MEM_HANDLE_TYPE_FABRIC)
        fail(CUDA_ERROR_NOT_PERMITTED, "There is no channel for fabric handles");
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        fail(CUDA_ERROR_INVALID_VALUE, "Handle type %d is not a file descriptor",
             static_cast<int>(type));
}

std::shared_ptr<Pool> imported_before(const SharedHeader& header) {
    std::shared_ptr<Pool> found;
    objects().pools.visit([&](const auto& pool) {
        if (pool->imported && std::equal(header.pool, header.pool + 2, pool->area->header().pool))
            found = pool;
    });
    return found;
}

} // namespace

CUDAMOD_API cuMemPoolExportToShareableHandle(void* file, CUmemoryPool handle,
                                             CUmemAllocationHandleType type,
                                             unsigned long long flags) {
    return locked_call(
        "cuMemPoolExportToShareableHandle",
        [&] {
            require_pointer(file, "the handle");
            const auto pool = find_pool(handle);
            require_own(*pool, "is exported there");
            require_file_type(type, flags);
            if (!(pool->handle_types & type))
                fail(CUDA_ERROR_INVALID_VALUE, "The pool was made without this handle type");
            const int exported = pool->area->export_file();
            if (exported < 0) fail(CUDA_ERROR_OUT_OF_MEMORY, "There is no file descriptor free");
            std::memcpy(file, &exported, sizeof exported);
            pool->exported = true;
        },
        static_cast<const void*>(file), handle, static_cast<int>(type), flags);
}

CUDAMOD_API cuMemPoolImportFromShareableHandle(CUmemoryPool* handle, void* file,
                                               CUmemAllocationHandleType type,
                                               unsigned long long flags) {
    return locked_call(
        "cuMemPoolImportFromShareableHandle",
        [&] {
            require_pointer(handle, "the pool");
            require_file_type(type, flags);
            const int descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(file));
            if (fcntl(descriptor, F_GETFD) < 0)
                fail(CUDA_ERROR_UNKNOWN, "%d is no open file descriptor", descriptor);
            auto area = SharedArea::open(descriptor);
            if (!area)
                fail(CUDA_ERROR_INVALID_VALUE, "File descriptor %d is no exported pool's",
                     descriptor);
            const SharedHeader& header = area->header();
            if (header.device >= 0 && static_cast<std::size_t>(header.device) >= devices().size())
                fail(CUDA_ERROR_INVALID_VALUE, "The pool's device %d is not visible here",
                     header.device);
            if (const auto before = imported_before(header)) {
                *handle = before->handle;
                return;
            }
            auto pool = std::make_shared<Pool>();
            pool->imported = true;
            pool->area = std::move(area);
            if (header.device >= 0)
                pool->device = &device_at(header.device);
            else
                pool->place.location = CU_MEM_LOCATION_TYPE_HOST_NUMA;
            pool->place.id = std::max(header.device, 0);
            *handle = pool->handle = objects().pools.insert(pool);
        },
        handle, static_cast<const void*>(file), static_cast<int>(type), flags);
}

CUDAMOD_API cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
    return locked_call(
        "cuMemPoolExportPointer",
        [&] {
            require_pointer(data, "the data");
            const auto allocation = find_allocation(address);
            if (!allocation->area || allocation->imported)
                fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not memory of a pool that is exported",
                     address);
            if (!allocation->pool->exported)
                fail(CUDA_ERROR_INVALID_VALUE, "The pool itself is not exported yet");
            const SharedHeader& header = allocation->area->header();
            const Exported exported{{header.pool[0], header.pool[1]},
                                    allocation->begin - allocation->area->begin(),
                                    allocation->bytes};
            std::memset(data, 0, sizeof *data);
            std::memcpy(data, &exported, sizeof exported);
        },
        static_cast<const void*>(data), address);
}

CUDAMOD_API cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool handle,
                                   CUmemPoolPtrExportData* data) {
    return locked_call(
        "cuMemPoolImportPointer",
        [&] {
            require_pointer(address, "the address");
            require_pointer(data, "the data");
            const auto pool = find_pool(handle);
            Exported exported;
            std::memcpy(&exported, data, sizeof exported);
            if (!pool->imported ||
                !std::equal(exported.pool, exported.pool + 2, pool->area->header().pool))
                fail(CUDA_ERROR_INVALID_VALUE, "The data is not of the process that exported the "
                                               "pool");
            const std::uint64_t room = pool->area->header().bytes;
            if (exported.offset >= room || exported.bytes > room - exported.offset)
                fail(CUDA_ERROR_INVALID_VALUE, "The data is damaged");
            auto& known = pool->imports[exported.offset];
            auto allocation = known.lock();
            if (!allocation) {
                allocation = address_space().share(pool->area, exported.offset, exported.bytes,
                                                   pool->device, true);
                allocation->pool = pool;
                known = allocation;
            }
            allocation->freeing = 0; // a free that has not run yet was of the earlier import
            *address = allocation->begin;
        },
        address, handle, static_cast<const void*>(data));
}
