#pragma once

#include "emulator/api.h"

#include <cstdint>
#include <map>
#include <memory>

namespace cudamod::emulator {

struct Allocation;
struct Device;
class SharedArea;

/// Where a pool's memory lies: what tells one place's pools from another's.
struct PoolPlace {
    CUmemAllocationType type = CU_MEM_ALLOCATION_TYPE_PINNED;
    CUmemLocationType location = CU_MEM_LOCATION_TYPE_DEVICE;
    int id = 0;

    auto operator<=>(const PoolPlace&) const = default;
};

/// A stream-ordered memory pool. Reserved memory is accounted in steps as the driver reserves it,
/// not really held.
struct Pool {
    CUmemoryPool handle = nullptr;
    PoolPlace place;
    Device* device = nullptr; ///< null for a pool of host or managed memory
    bool is_default = false;
    unsigned handle_types = 0;        ///< CUmemAllocationHandleType bits
    std::shared_ptr<SharedArea> area; ///< of a pool for other processes, or from one
    bool imported = false, exported = false;
    std::map<std::uint64_t, std::weak_ptr<Allocation>> imports; ///< live ones, by offset
    bool destroyed = false;      ///< no new allocations; it goes with its last allocation
    std::uint64_t max_bytes = 0; ///< 0: no limit
    int reuse_event_dependencies = 1, reuse_opportunistic = 1, reuse_internal_dependencies = 1;
    std::uint64_t release_threshold = 0;
    std::uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
    std::map<int, CUmemAccess_flags> access; ///< of other devices, by ordinal

    bool managed() const { return place.type == CU_MEM_ALLOCATION_TYPE_MANAGED; }

    /// Whether kernels of the device may use the pool's memory.
    bool accessible_from(const Device& device) const;

    void add(std::uint64_t bytes);
    void remove(std::uint64_t bytes);
    void trim(std::uint64_t keep);
};

std::shared_ptr<Pool> make_default_pool(Device& device);

/// The pool behind a handle; fails with CUDA_ERROR_INVALID_VALUE.
std::shared_ptr<Pool> find_pool(CUmemoryPool handle);

/// Fails with CUDA_ERROR_INVALID_VALUE for a pool from another process.
void require_own(const Pool& pool, const char* what);

/// The place that a caller names; fails with the status that the driver answers for none.
PoolPlace pool_place(const CUmemLocation& location, CUmemAllocationType type);

/// Lets places fall back to their default pools where this one was current.
void forget_current(const std::shared_ptr<Pool>& pool);

/// Ends an allocation that came from a pool.
void release_to_pool(const std::shared_ptr<Allocation>& allocation);

} // namespace cudamod::emulator
