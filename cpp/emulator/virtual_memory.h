#pragma once

#include "emulator/address_space.h"
#include "emulator/api.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

namespace cudamod::emulator {

struct Device;

/// Memory of a device without an address: what cuMemCreate makes. Its pages go back to the system,
/// and its bytes to the device, once no handle names it and nothing maps it.
struct PhysicalMemory {
    PhysicalMemory(Device& device, std::size_t bytes);
    ~PhysicalMemory();
    PhysicalMemory(const PhysicalMemory&) = delete;
    PhysicalMemory& operator=(const PhysicalMemory&) = delete;

    Device& device;
    std::size_t bytes;
    int file = -1;
    int references = 1; ///< how often its handle was given out
    PhysicalMemory* handle = nullptr;
    CUmemAllocationProp properties{};
};

/// Addresses of a device that nothing lies at until memory is mapped there.
struct Reservation {
    /// Physical memory at its addresses.
    struct Mapping {
        std::size_t bytes = 0;
        std::shared_ptr<PhysicalMemory> memory;
        std::map<int, CUmemAccess_flags> access; ///< by device; nothing: none
    };

    std::uint64_t begin = 0;
    std::size_t bytes = 0;
    void* addresses = nullptr; ///< as they were reserved, which may begin before
    std::size_t address_bytes = 0;
    std::map<std::uint64_t, Mapping> mappings; ///< by address
    /// Neighbours with the same access are one allocation, which copies and fills may cross.
    std::map<std::uint64_t, std::shared_ptr<Allocation>> allocations;

    std::uint64_t end() const { return begin + bytes; }
};

} // namespace cudamod::emulator
