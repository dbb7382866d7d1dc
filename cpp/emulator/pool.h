#pragma once

#include "emulator/api.h"

#include <cstdint>
#include <map>
#include <memory>

namespace cudamod::emulator {

struct Allocation;
struct Device;

/// A stream-ordered memory pool. Reserved memory is accounted in steps as the driver reserves it,
/// not really held.
struct Pool {
    CUmemoryPool handle = nullptr;
    Device* device = nullptr; ///< null for a pool of host memory
    bool is_default = false;
    bool destroyed = false;      ///< no new allocations; it goes with its last allocation
    std::uint64_t max_bytes = 0; ///< 0: no limit
    int reuse_event_dependencies = 1, reuse_opportunistic = 1, reuse_internal_dependencies = 1;
    std::uint64_t release_threshold = 0;
    std::uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
    std::map<int, CUmemAccess_flags> access; ///< of other devices, by ordinal

    void add(std::uint64_t bytes);
    void remove(std::uint64_t bytes);
    void trim(std::uint64_t keep);
};

std::shared_ptr<Pool> make_default_pool(Device& device);

/// Ends an allocation that came from a pool.
void release_to_pool(const std::shared_ptr<Allocation>& allocation);

} // namespace cudamod::emulator
