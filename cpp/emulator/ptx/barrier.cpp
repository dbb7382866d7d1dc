#include "emulator/ptx/block_check.h"
#include "emulator/ptx/runtime.h"
#include "emulator/ptx/worker.h"

namespace cudamod::emulator::ptx {
namespace {

/// The barrier that the lanes of `mask` mean; they have to agree.
unsigned chosen(Warp& w, const Instruction& i, std::uint32_t mask, std::uint32_t& expected) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
    const std::uint32_t number = w.at<std::uint32_t>(i.slots[1])[lane];
    if (number >= kBarriers) {
        w.fault(FaultKind::IllegalInstruction, i, lane,
                "barrier " + std::to_string(number) + " does not exist");
    }
    expected = i.slots[2] == kNoSlot ? 0 : w.at<std::uint32_t>(i.slots[2])[lane];
    if (i.slots[2] != kNoSlot && (expected == 0 || expected % kLanes != 0)) {
        w.fault(FaultKind::IllegalInstruction, i, lane,
                "barrier for " + std::to_string(expected) + " threads: must be a multiple of 32");
    }
    return number;
}

std::uint32_t same_barrier(Warp& w, const Instruction& i, std::uint32_t mask) {
    const auto* numbers = w.at<std::uint32_t>(i.slots[1]);
    const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
    std::uint32_t same = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        same |= numbers[l] == numbers[lane] ? 1u << l : 0u;
    return mask & same;
}

template <bool Reduce>
void synchronize(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.separate(mask, w.pc);
    w.separate(same_barrier(w, i, mask), &i);
    mask = w.active;
    std::uint32_t expected = 0;
    const unsigned number = chosen(w, i, mask, expected);
    Barrier& barrier = w.block->barriers[number];
    barrier.in_use = true;
    if (expected != 0) barrier.expected = expected;
    if (Reduce) {
        const std::uint32_t votes = *w.at<std::uint32_t>(i.slots[3]) & mask;
        barrier.count += static_cast<std::uint32_t>(__builtin_popcount(votes));
        barrier.voters += static_cast<std::uint32_t>(__builtin_popcount(mask));
    }
    if (w.block->check) w.block->check->arrive(w, mask, number);
    w.wait(i, GroupState::AtBarrier, 0, number);
    w.block->check_barrier(number);
}

void arrive(Warp& w, const Instruction& i, std::uint32_t mask) {
    std::uint32_t expected = 0;
    const unsigned number = chosen(w, i, mask, expected);
    Barrier& barrier = w.block->barriers[number];
    barrier.in_use = true;
    barrier.expected = expected;
    barrier.arrived +=
        mask == w.live ? kLanes : static_cast<std::uint32_t>(__builtin_popcount(mask));
    if (w.block->check) w.block->check->arrive(w, mask, number);
    w.block->check_barrier(number);
}

void cluster_arrive(Warp& w, const Instruction& i, std::uint32_t mask) {
    const std::uint32_t again = w.cluster_arrived & mask;
    if (again != 0) {
        w.fault(FaultKind::IllegalInstruction, i, static_cast<unsigned>(__builtin_ctz(again)),
                "arrives at the cluster's barrier twice without waiting");
    }
    w.cluster_arrived |= mask;
    w.block->cluster->in_use = true;
    w.block->cluster->check_barrier();
}

void cluster_wait(Warp& w, const Instruction& i, std::uint32_t mask) {
    const std::uint32_t pending = w.cluster_arrived & mask;
    if (pending == 0) return;
    w.separate(pending, w.pc);
    w.wait(i, GroupState::AtClusterBarrier, 0, 0);
}

} // namespace

Handler select_barrier(const Form& form) {
    if (form.has("cluster")) return form.has("arrive") ? &cluster_arrive : &cluster_wait;
    if (form.has("arrive")) return &arrive;
    return form.has("red") ? &synchronize<true> : &synchronize<false>;
}

} // namespace cudamod::emulator::ptx
