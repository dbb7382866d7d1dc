#include "emulator/graph_memory.h"

#include "emulator/address_space.h"
#include "emulator/device.h"
#include "emulator/failure.h"
#include "emulator/settings.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace cudamod::emulator {
namespace {

struct Highs {
    std::mutex mutex;
    std::map<int, GraphMemoryUse> by_device;
};

Highs& highs() {
    static Highs* const all = new Highs;
    return *all;
}

/// The use of a device's graph memory now, which may be the most there was.
GraphMemoryUse measure(const Device& device) {
    GraphMemoryUse& use = highs().by_device[device.ordinal];
    use.used = use.reserved = 0;
    for (const auto& allocation : address_space().live()) {
        if (!allocation->of_graph || allocation->device != &device) continue;
        use.reserved += allocation->bytes;
        if (allocation->uses) use.used += allocation->bytes;
    }
    use.used_high = std::max(use.used_high, use.used);
    use.reserved_high = std::max(use.reserved_high, use.reserved);
    return use;
}

} // namespace

GraphMemory::GraphMemory(Device& device, std::size_t bytes) {
    if (!bytes) fail(CUDA_ERROR_INVALID_VALUE, "An allocation of 0 bytes was asked");
    allocation = address_space().allocate_device(device, bytes);
    if (!allocation) fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked, which there are not", bytes);
    allocation->of_graph = true;
    allocation->uses = 0;
    graph_memory_use(device);
}

GraphMemory::~GraphMemory() {
    // Memory that a launch allocated outlives its graph, until somebody frees it.
    allocation->of_graph = false;
    if (!allocation->uses) address_space().release(allocation);
}

bool GraphMemory::present() const {
    return allocation->uses > 0;
}

void GraphMemory::provide() {
    ++allocation->uses;
    graph_memory_use(*allocation->device);
}

bool free_graph_memory(CUdeviceptr address) {
    const auto allocation = address_space().find(address);
    if (!allocation || allocation->begin != address) return false;
    address_space().release(allocation);
    return true;
}

std::shared_ptr<Allocation> graph_memory_at(CUdeviceptr address) {
    auto allocation = address_space().find_reserved(address);
    return allocation && allocation->of_graph ? allocation : nullptr;
}

GraphMemoryUse graph_memory_use(const Device& device) {
    std::lock_guard lock(highs().mutex);
    return measure(device);
}

void reset_graph_memory_high(const Device& device, bool used) {
    std::lock_guard lock(highs().mutex);
    GraphMemoryUse& high = highs().by_device[device.ordinal];
    (used ? high.used_high : high.reserved_high) = 0;
    measure(device);
}

} // namespace cudamod::emulator
