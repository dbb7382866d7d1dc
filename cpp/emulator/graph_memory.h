#pragma once

#include "emulator/api.h"

#include <cstddef>
#include <memory>

namespace cudamod::emulator {

struct Allocation;
struct Device;

/// The memory of one allocation node: its addresses are the node's from the day the node is made,
/// and there is memory behind them from a launch until something frees it.
struct GraphMemory {
    std::shared_ptr<Allocation> allocation;

    GraphMemory(Device& device, std::size_t bytes);
    ~GraphMemory();
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;

    /// Whether a launch has allocated it and nothing freed it since.
    bool present() const;

    /// Allocates it: the content is undefined.
    void provide();
};

/// Ends one use of graph memory at that address; false if there is none.
bool free_graph_memory(CUdeviceptr address);

/// The allocation node memory at the address, present or not; null for any other address.
std::shared_ptr<Allocation> graph_memory_at(CUdeviceptr address);

/// Bytes of graph memory on a device: those that launches hold, and all that graphs reserve; now,
/// and the most since the last reset.
struct GraphMemoryUse {
    std::size_t used = 0, reserved = 0, used_high = 0, reserved_high = 0;
};
GraphMemoryUse graph_memory_use(const Device& device);
void reset_graph_memory_high(const Device& device, bool used);

} // namespace cudamod::emulator
