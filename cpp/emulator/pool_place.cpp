#include "emulator/call.h"
#include "emulator/device.h"
#include "emulator/objects.h"
#include "emulator/pool.h"
#include "emulator/settings.h"

#include <map>

namespace cudamod::emulator {
namespace {

/// The pools of the host and of managed memory, by place; a device's own are the device's.
struct PlacePools {
    std::shared_ptr<Pool> standard, current;
};

std::map<PoolPlace, PlacePools>& place_pools() {
    static auto* const pools = new std::map<PoolPlace, PlacePools>;
    return *pools;
}

bool is_device(const PoolPlace& place) {
    return place.location == CU_MEM_LOCATION_TYPE_DEVICE &&
           place.type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

PlacePools& pools_of(const PoolPlace& place) {
    PlacePools& pools = place_pools()[place];
    if (!pools.standard) {
        auto pool = std::make_shared<Pool>();
        pool->place = place;
        pool->is_default = true;
        pool->handle = objects().pools.insert(pool);
        pools.standard = pools.current = pool;
    }
    return pools;
}

void require_managed_pools() {
    if (settings().driver_version < 13000)
        fail(CUDA_ERROR_INVALID_VALUE, "Pools of managed memory are as new as CUDA 13.0");
}

/// A place whose default and current pool can be asked for.
PoolPlace named_place(const CUmemLocation* location, CUmemAllocationType type) {
    require_pointer(location, "the location");
    if (location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        fail(CUDA_ERROR_NOT_SUPPORTED, "The current thread's NUMA node has no pool of its own");
    return pool_place(*location, type);
}

} // namespace

PoolPlace pool_place(const CUmemLocation& location, CUmemAllocationType type) {
    PoolPlace place{type, location.type, location.id};
    const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (managed)
        require_managed_pools();
    else if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
        fail(CUDA_ERROR_INVALID_VALUE, "Allocation type %d is not a pool's",
             static_cast<int>(type));
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (location.id < 0 || static_cast<std::size_t>(location.id) >= devices().size())
            fail(CUDA_ERROR_INVALID_VALUE, "There is no device %d", location.id);
        return place;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        if (location.id != 0)
            fail(CUDA_ERROR_INVALID_VALUE, "There is no NUMA node %d", location.id);
        return place;
    case CU_MEM_LOCATION_TYPE_HOST:
        place.id = 0;
        return place;
    case CU_MEM_LOCATION_TYPE_INVALID:
        place.id = 0;
        if (managed) return place;
        [[fallthrough]];
    default:
        fail(CUDA_ERROR_INVALID_VALUE, "Location type %d is not a pool's",
             static_cast<int>(location.type));
    }
}

void forget_current(const std::shared_ptr<Pool>& pool) {
    for (const auto& device : devices()) {
        if (device->current_pool == pool) device->current_pool = device->default_pool;
    }
    for (auto& [place, pools] : place_pools()) {
        if (pools.current == pool) pools.current = pools.standard;
    }
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

CUDAMOD_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    return locked_call(
        "cuDeviceGetDefaultMemPool",
        [&] {
            require_pointer(pool, "the pool");
            *pool = device_at(device).default_pool->handle;
        },
        pool, device);
}

CUDAMOD_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    return locked_call(
        "cuDeviceGetMemPool",
        [&] {
            require_pointer(pool, "the pool");
            *pool = device_at(device).current_pool->handle;
        },
        pool, device);
}

CUDAMOD_API cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
    return locked_call(
        "cuDeviceSetMemPool",
        [&] {
            Device& device = device_at(ordinal);
            auto pool = find_pool(handle);
            require_own(*pool, "gives no new memory");
            if (pool->device != &device)
                fail(CUDA_ERROR_INVALID_VALUE, "The pool is not device %d's", ordinal);
            device.current_pool = std::move(pool);
        },
        ordinal, handle);
}

CUDAMOD_API cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                   CUmemAllocationType type) {
    return locked_call(
        "cuMemGetDefaultMemPool",
        [&] {
            require_pointer(pool, "the pool");
            const PoolPlace place = named_place(location, type);
            *pool = is_device(place) ? device_at(place.id).default_pool->handle
                                     : pools_of(place).standard->handle;
        },
        pool, location, static_cast<int>(type));
}

CUDAMOD_API cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
    return locked_call(
        "cuMemGetMemPool",
        [&] {
            require_pointer(pool, "the pool");
            const PoolPlace place = named_place(location, type);
            *pool = is_device(place) ? device_at(place.id).current_pool->handle
                                     : pools_of(place).current->handle;
        },
        pool, location, static_cast<int>(type));
}

CUDAMOD_API cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                            CUmemoryPool handle) {
    return locked_call(
        "cuMemSetMemPool",
        [&] {
            const PoolPlace place = named_place(location, type);
            auto pool = find_pool(handle);
            require_own(*pool, "gives no new memory");
            if (pool->place != place)
                fail(CUDA_ERROR_INVALID_VALUE, "The pool's memory lies elsewhere");
            (is_device(place) ? device_at(place.id).current_pool : pools_of(place).current) =
                std::move(pool);
        },
        location, static_cast<int>(type), handle);
}
