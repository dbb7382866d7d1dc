#include "emulator/pool.h"

#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/event.h"
#include "emulator/memory.h"
#include "emulator/objects.h"
#include "emulator/shared_area.h"
#include "emulator/stream.h"
#include "emulator/stream_check.h"
#include "emulator/stream_order.h"

#include <algorithm>

namespace cudamod::emulator {
namespace {

constexpr std::uint64_t kReservationStep = std::uint64_t{32} << 20;

std::uint64_t round_to_step(std::uint64_t bytes) {
    return (bytes + kReservationStep - 1) / kReservationStep * kReservationStep;
}

} // namespace

std::shared_ptr<Pool> find_pool(CUmemoryPool handle) {
    auto pool = objects().pools.find(handle);
    if (!pool)
        fail(CUDA_ERROR_INVALID_VALUE, "Memory pool %p does not exist", static_cast<void*>(handle));
    return pool;
}

void require_own(const Pool& pool, const char* what) {
    if (pool.imported) fail(CUDA_ERROR_INVALID_VALUE, "The pool is another process's: it %s", what);
}

bool Pool::accessible_from(const Device& of) const {
    if (managed() || &of == device) return true;
    const auto given = access.find(of.ordinal);
    return given != access.end() && given->second != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

void Pool::add(std::uint64_t bytes) {
    used += bytes;
    used_high = std::max(used_high, used);
    reserved = std::max(reserved, round_to_step(used));
    reserved_high = std::max(reserved_high, reserved);
}

void Pool::remove(std::uint64_t bytes) {
    used -= bytes;
    trim(release_threshold);
}

void Pool::trim(std::uint64_t keep) {
    if (keep >= reserved) return;
    reserved = std::min(reserved, std::max(round_to_step(used), round_to_step(keep)));
}

std::shared_ptr<Pool> make_default_pool(Device& device) {
    auto pool = std::make_shared<Pool>();
    pool->device = &device;
    pool->place.id = device.ordinal;
    pool->is_default = true;
    pool->handle = objects().pools.insert(pool);
    return pool;
}

void release_to_pool(const std::shared_ptr<Allocation>& allocation) {
    if (allocation->imported)
        allocation->pool->imports.erase(allocation->begin - allocation->area->begin());
    else
        allocation->pool->remove(allocation->bytes);
    address_space().release(allocation);
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

std::shared_ptr<Allocation> allocation_in(const Pool& pool, std::size_t bytes,
                                          const std::shared_ptr<Mark>& begun) {
    if (pool.area) {
        const auto offset = pool.area->take(bytes);
        if (!offset) return nullptr;
        auto shared = address_space().share(pool.area, *offset, bytes, pool.device, false);
        if (!shared) pool.area->give_back(*offset);
        return shared;
    }
    if (pool.device) {
        auto made = address_space().allocate_device(*pool.device, bytes, 512, begun);
        if (made) made->written = WrittenMap::make(bytes);
        return made;
    }
    return address_space().allocate_host(
        bytes, pool.managed() ? MemoryKind::managed : MemoryKind::pinned, begun);
}

/// The memory's address is known at once; work may touch it once the stream gets here.
CUdeviceptr allocate_from(const std::shared_ptr<Pool>& pool, Stream& stream, std::size_t bytes) {
    if (pool->destroyed) fail(CUDA_ERROR_INVALID_VALUE, "The memory pool is destroyed");
    require_own(*pool, "allocates there");
    if (!bytes) return 0;
    if (pool->max_bytes && pool->used + bytes > round_to_step(pool->max_bytes)) {
        fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked from a pool of at most %llu", bytes,
             static_cast<unsigned long long>(round_to_step(pool->max_bytes)));
    }
    Work work;
    work.mark = std::make_shared<Mark>();
    auto allocation = allocation_in(*pool, bytes, work.mark);
    if (!allocation) fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked, which there are not", bytes);
    allocation->pool = pool;
    if (!allocation->device && pool->managed()) allocation->device = stream.context->device;
    pool->add(bytes);
    if (checks_streams()) {
        work.what = "allocation";
        work.task = [allocation] {
            note_use(allocation.get(), allocation->host, allocation->bytes, true);
        };
    }
    stream.push(std::move(work));
    return allocation->begin;
}

bool capture_allocation(Stream& stream, const Pool& pool, CUdeviceptr* address, std::size_t bytes) {
    if (!captures(stream)) return false;
    Device& device = pool.device ? *pool.device : *stream.context->device;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
    parameters.bytesize = bytes;
    auto operation = allocate_operation(parameters);
    *address = operation.parameters.dptr;
    return capture_into(stream, std::move(operation));
}

std::uint64_t* counter(Pool& pool, CUmemPool_attribute attribute) {
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool.release_threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool.reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool.used_high;
    default:
        return nullptr;
    }
}

int* reuse_policy(Pool& pool, CUmemPool_attribute attribute) {
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return &pool.reuse_event_dependencies;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return &pool.reuse_opportunistic;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return &pool.reuse_internal_dependencies;
    default:
        return nullptr;
    }
}

void make_shareable(Pool& pool) {
    constexpr unsigned kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                       kFabric = CU_MEM_HANDLE_TYPE_FABRIC;
    if (!pool.handle_types) return;
    if (pool.handle_types & ~(kFile | kFabric) || pool.managed() ||
        pool.place.location == CU_MEM_LOCATION_TYPE_HOST)
        fail(CUDA_ERROR_INVALID_VALUE, "Such a pool cannot be exported as handle type %u",
             pool.handle_types);
    const Device& least = pool.device ? *pool.device : *devices().front();
    pool.area = SharedArea::create(2 * least.total_bytes, pool.device ? pool.place.id : -1);
    if (!pool.area) fail(CUDA_ERROR_OUT_OF_MEMORY, "There is no room to share memory in");
}

void set_access(Pool& pool, const CUmemAccessDesc& access) {
    if (access.location.type == CU_MEM_LOCATION_TYPE_HOST && !pool.device) return;
    if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE || pool.managed()) {
        fail(CUDA_ERROR_NOT_SUPPORTED, "Access of location type %d cannot be set",
             static_cast<int>(access.location.type));
    }
    const Device& device = device_at(access.location.id);
    if (&device == pool.device && access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        fail(CUDA_ERROR_INVALID_DEVICE, "A device's access to its own pool cannot be taken away");
    if (access.flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        fail(CUDA_ERROR_NOT_SUPPORTED, "Pools give access to read and write, or none");
    pool.access[device.ordinal] = access.flags;
}

} // namespace

CUDAMOD_API cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
    return locked_call(
        "cuMemPoolCreate",
        [&] {
            require_pointer(handle, "the pool");
            require_pointer(properties, "the properties");
            auto pool = std::make_shared<Pool>();
            pool->place = pool_place(properties->location, properties->allocType);
            if (pool->place.location == CU_MEM_LOCATION_TYPE_DEVICE && !pool->managed())
                pool->device = &device_at(pool->place.id);
            pool->max_bytes = properties->maxSize;
            pool->handle_types = properties->handleTypes;
            make_shareable(*pool);
            *handle = pool->handle = objects().pools.insert(pool);
        },
        handle, properties);
}

CUDAMOD_API cuMemPoolDestroy(CUmemoryPool handle) {
    return locked_call(
        "cuMemPoolDestroy",
        [&] {
            const auto pool = find_pool(handle);
            if (pool->is_default)
                fail(CUDA_ERROR_INVALID_VALUE, "A default pool cannot be destroyed");
            if (!pool->imports.empty())
                fail(CUDA_ERROR_INVALID_VALUE, "Memory imported from the pool is not freed");
            pool->destroyed = true;
            forget_current(pool);
            objects().pools.erase(handle);
        },
        handle);
}

CUDAMOD_API cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    return locked_call(
        "cuMemPoolGetAttribute",
        [&] {
            require_pointer(value, "the value");
            const auto pool = find_pool(handle);
            require_own(*pool, "has its attributes there");
            if (const int* policy = reuse_policy(*pool, attribute))
                *static_cast<int*>(value) = *policy;
            else if (const std::uint64_t* count = counter(*pool, attribute))
                *static_cast<cuuint64_t*>(value) = *count;
            else
                fail(CUDA_ERROR_INVALID_VALUE, "Pool attribute %d is unknown",
                     static_cast<int>(attribute));
        },
        handle, static_cast<int>(attribute), value);
}

CUDAMOD_API cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    return locked_call(
        "cuMemPoolSetAttribute",
        [&] {
            require_pointer(value, "the value");
            const auto pool = find_pool(handle);
            require_own(*pool, "has its attributes there");
            if (int* policy = reuse_policy(*pool, attribute)) {
                *policy = *static_cast<const int*>(value) != 0;
                return;
            }
            const auto wanted =
                counter(*pool, attribute) ? *static_cast<const cuuint64_t*>(value) : 0;
            switch (attribute) {
            case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                pool->release_threshold = wanted;
                return;
            case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                if (wanted)
                    fail(CUDA_ERROR_INVALID_VALUE, "A high-water mark can only be set to 0");
                if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
                    pool->reserved_high = pool->reserved;
                else
                    pool->used_high = pool->used;
                return;
            default:
                fail(CUDA_ERROR_INVALID_VALUE, "Pool attribute %d cannot be set",
                     static_cast<int>(attribute));
            }
        },
        handle, static_cast<int>(attribute), value);
}

CUDAMOD_API cuMemPoolTrimTo(CUmemoryPool handle, size_t bytes) {
    return locked_call("cuMemPoolTrimTo", [&] { find_pool(handle)->trim(bytes); }, handle, bytes);
}

CUDAMOD_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access, size_t count) {
    return locked_call(
        "cuMemPoolSetAccess",
        [&] {
            const auto pool = find_pool(handle);
            if (count) require_pointer(access, "the access descriptors");
            for (std::size_t index = 0; index < count; ++index)
                set_access(*pool, access[index]);
        },
        handle, access, count);
}

CUDAMOD_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                               CUmemLocation* location) {
    return locked_call(
        "cuMemPoolGetAccess",
        [&] {
            require_pointer(flags, "the flags");
            require_pointer(location, "the location");
            const auto pool = find_pool(handle);
            if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id < 0 ||
                static_cast<std::size_t>(location->id) >= devices().size())
                fail(CUDA_ERROR_INVALID_VALUE, "The location is no device");
            *flags = pool->accessible_from(device_at(location->id))
                         ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                         : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        },
        flags, handle, location);
}

namespace {

/// Null: the current pool of the stream's device.
void allocate_async(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                    CUstream stream_handle) {
    require_pointer(address, "the address");
    std::unique_lock lock(driver_mutex());
    const auto stream = find_stream(stream_handle);
    const auto pool = handle ? find_pool(handle) : stream->context->device->current_pool;
    if (capture_allocation(*stream, *pool, address, bytes)) return;
    try {
        *address = allocate_from(pool, *stream, bytes);
    } catch (const Failure& failure) {
        // What is still to be freed may be enough.
        if (failure.status != CUDA_ERROR_OUT_OF_MEMORY || stream->idle()) throw;
        lock.unlock();
        stream->wait();
        lock.lock();
        *address = allocate_from(pool, *stream, bytes);
    }
    lock.unlock();
    stream->make_room();
}

} // namespace

CUDAMOD_API cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
    return unlocked_call(
        "cuMemAllocAsync", [&] { allocate_async(address, bytes, nullptr, stream); }, address, bytes,
        stream);
}

CUDAMOD_API cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                    CUstream stream) {
    return unlocked_call(
        "cuMemAllocFromPoolAsync",
        [&] {
            if (!pool) fail(CUDA_ERROR_INVALID_VALUE, "The memory pool must not be NULL");
            allocate_async(address, bytes, pool, stream);
        },
        address, bytes, pool, stream);
}

CUDAMOD_API cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    return unlocked_call(
        "cuMemFreeAsync",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto stream = find_stream(handle);
            if (!address) return;
            if (captures(*stream)) {
                capture_into(*stream, free_operation(address));
                return;
            }
            const auto allocation = find_allocation(address);
            if (allocation->kind != MemoryKind::device && !allocation->pool) {
                fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not memory of a pool or of cuMemAlloc",
                     address);
            }
            static std::uint64_t frees = 0; // under the driver's lock
            const std::uint64_t number = allocation->freeing = ++frees;
            Work work;
            work.after_fault = true;
            work.what = "free";
            work.task = [allocation, number] {
                note_use(allocation.get(), allocation->host, allocation->bytes, true);
                std::lock_guard lock(driver_mutex());
                if (allocation->freeing != number) return; // imported again meanwhile
                allocation->freeing = 0;
                if (allocation->pool)
                    release_to_pool(allocation);
                else
                    address_space().release(allocation);
            };
            stream->push(std::move(work));
            lock.unlock();
            stream->make_room();
        },
        address, handle);
}
