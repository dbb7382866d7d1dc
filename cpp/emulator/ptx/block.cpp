#include "emulator/ptx/block.h"

#include "emulator/ptx/block_check.h"

namespace cudamod::emulator::ptx {
namespace {

/// Gives a group that waited in barrier.red its result.
void deliver(const Group& group, const Barrier& barrier) {
    const Instruction& i = *group.waiting;
    if (i.slots[0] == kNoSlot) return;
    auto* destination = reinterpret_cast<std::uint32_t*>(group.frame->registers + i.slots[0]);
    if (i.extra == 0) {
        for (unsigned l = 0; l < kLanes; ++l) {
            if ((group.mask >> l & 1) != 0) destination[l] = barrier.count;
        }
    } else {
        const bool value = i.extra == 1 ? barrier.count == barrier.voters : barrier.count != 0;
        *destination = value ? *destination | group.mask : *destination & ~group.mask;
    }
}

} // namespace

Block::Block() = default;
Block::~Block() = default;

std::uint32_t Block::live_threads() const {
    std::uint32_t count = 0;
    for (const auto& warp : warps)
        count += static_cast<std::uint32_t>(__builtin_popcount(warp->live));
    return count;
}

void Block::check_barrier(unsigned number) {
    Barrier& barrier = barriers[number];
    if (!barrier.in_use) return;
    std::uint32_t waiting = barrier.arrived, threads = barrier.arrived;
    for (const auto& warp : warps) {
        std::uint32_t here = 0;
        for (const Group& group : warp->groups()) {
            if (group.state == GroupState::AtBarrier && group.barrier == number) here |= group.mask;
        }
        if (here == 0) continue;
        threads += static_cast<std::uint32_t>(__builtin_popcount(here));
        // A whole warp counts as 32 threads, even where the block's last one is smaller.
        waiting +=
            here == warp->live ? kLanes : static_cast<std::uint32_t>(__builtin_popcount(here));
    }
    const bool complete =
        barrier.expected == 0 ? threads >= live_threads() : waiting >= barrier.expected;
    if (!complete) return;
    if (check) check->pass(number, barrier.expected != 0);
    for (const auto& warp : warps) {
        for (Group& group : warp->groups()) {
            if (group.state != GroupState::AtBarrier || group.barrier != number) continue;
            deliver(group, barrier);
            group.state = GroupState::Runnable;
        }
    }
    barrier = Barrier{};
}

void Block::check_barriers() {
    for (unsigned number = 0; number < kBarriers; ++number) {
        if (barriers[number].in_use) check_barrier(number);
    }
    if (cluster->in_use) cluster->check_barrier();
}

void Cluster::check_barrier() {
    std::uint32_t live = 0, arrived = 0;
    for (const Block* block : blocks) {
        for (const auto& warp : block->warps) {
            live += static_cast<std::uint32_t>(__builtin_popcount(warp->live));
            arrived +=
                static_cast<std::uint32_t>(__builtin_popcount(warp->live & warp->cluster_arrived));
        }
    }
    if (arrived < live) return;
    in_use = false;
    for (Block* block : blocks) {
        if (block->check) block->check->meet();
        for (const auto& warp : block->warps) {
            warp->cluster_arrived = 0;
            for (Group& group : warp->groups()) {
                if (group.state == GroupState::AtClusterBarrier) group.state = GroupState::Runnable;
            }
        }
    }
}

} // namespace cudamod::emulator::ptx
