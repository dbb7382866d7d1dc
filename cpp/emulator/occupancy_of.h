#pragma once

#include "emulator/kernel.h"
#include "emulator/occupancy.h"

#include <cstdint>

namespace cudamod::emulator {

/// What the multiprocessors of the kernel's device offer.
Multiprocessor multiprocessor_of(const KernelView& view);

/// What the kernel needs, with its current settings.
KernelUse use_of(const KernelView& view);

/// Blocks of the kernel that fit on one multiprocessor.
int active_blocks(const KernelView& view, int block_size, std::uint64_t dynamic_shared);

} // namespace cudamod::emulator
