/// cp.async.bulk and its relatives. Copies are made at once; their completion is an mbarrier's
/// bytes, or a bulk group that has nothing left to wait for.
#pragma once

#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/runtime.h"
#include "emulator/ptx/warp.h"

namespace cudamod::emulator::ptx::bulk {

/// Instruction::extra.
struct Settings {
    std::uint32_t to : 2 = 0, from : 2 = 0; ///< Where
    std::uint32_t multicast : 1 = 0;
    std::uint32_t reduces : 1 = 0;
    std::uint32_t reduction : 4 = 0; ///< Reduction
    std::uint32_t type : 8 = 0;      ///< Type, of what is reduced or stored
    std::uint32_t rank : 4 = 0;      ///< of a tensor
    std::uint32_t unused : 10 = 0;
};

// Slots of copy: 64-bit addresses but for the last two and the count.
enum : unsigned { kTo = 0, kFrom = 1, kCount = 2, kBarrier = 3, kBlocks = 4 };
// Slots of tensor copies.
enum : unsigned { kShared = 0, kMap = 1, kCoordinates = 2, kTensorBarrier = 7, kTensorBlocks = 9 };

void copy(Warp& w, const Instruction& i, std::uint32_t mask);         ///< and cp.reduce
void load_tensor(Warp& w, const Instruction& i, std::uint32_t mask);  ///< to shared memory
void store_tensor(Warp& w, const Instruction& i, std::uint32_t mask); ///< and cp.reduce
/// st.async and red.async: slots 0..3 values; kAddressSlot; slot 4: the barrier.
void store_async(Warp& w, const Instruction& i, std::uint32_t mask);

} // namespace cudamod::emulator::ptx::bulk
