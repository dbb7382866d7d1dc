/// A block of threads: its warps, shared memory and barriers.
#pragma once

#include "emulator/ptx/warp.h"

#include <array>
#include <memory>

namespace cudamod::emulator::ptx {

struct Cluster;
class BlockCheck;

constexpr unsigned kBarriers = 16;

struct Barrier {
    std::uint32_t expected = 0; ///< threads; 0: all of the block
    std::uint32_t arrived = 0;  ///< bar.arrive only
    std::uint32_t count = 0;    ///< threads whose predicate was true
    std::uint32_t voters = 0;
    bool in_use = false;
};

struct Block {
    Dim3 index;
    std::uint32_t rank = 0; ///< in its cluster
    std::vector<std::byte> shared;
    std::vector<std::unique_ptr<Warp>> warps;
    std::array<Barrier, kBarriers> barriers;
    std::uint32_t threads = 0;
    Cluster* cluster = nullptr;
    std::unique_ptr<BlockCheck> check; ///< null: nobody asked for checks

    Block();
    ~Block();

    std::uint32_t live_threads() const;

    /// Completes barriers that wait for nobody else; called after arrivals and exits.
    void check_barrier(unsigned number);
    void check_barriers();
};

/// Blocks that are guaranteed to run together: a cluster, or (for a cooperative grid) all of them.
struct Cluster {
    std::vector<Block*> blocks;
    bool in_use = false; ///< somebody has arrived at the cluster barrier

    /// Releases the cluster barrier when every live thread has arrived.
    void check_barrier();
    Block* at_rank(std::uint32_t rank) const {
        return rank < blocks.size() ? blocks[rank] : nullptr;
    }
};

} // namespace cudamod::emulator::ptx
