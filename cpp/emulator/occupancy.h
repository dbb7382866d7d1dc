#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace cudamod::emulator {

/// What one multiprocessor offers, by compute capability (published in the CUDA programming guide,
/// table of technical specifications per compute capability).
struct Multiprocessor {
    std::uint32_t warp_size = 32;
    std::uint32_t threads; ///< per multiprocessor
    std::uint32_t blocks;  ///< per multiprocessor
    std::uint32_t threads_per_block = 1024;
    std::uint32_t registers = 65536; ///< per multiprocessor
    std::uint32_t registers_per_block = 65536;
    std::uint32_t registers_per_thread = 255;
    std::uint32_t register_unit = 256; ///< registers of a warp are allocated in multiples of this
    std::uint32_t partitions = 4;      ///< warps and registers are divided evenly among these
    std::uint32_t shared_bytes;        ///< per multiprocessor
    std::uint32_t shared_per_block = 49152;
    std::uint32_t shared_per_block_optin;
    std::uint32_t reserved_shared; ///< per block, by the system
    std::uint32_t shared_unit;     ///< shared memory of a block is allocated in multiples of this
    std::uint32_t barriers = 0;    ///< named barriers per multiprocessor; 0 where they don't limit
};

/// sm as in 75, 90, 120; nothing for one that isn't in the table.
std::optional<Multiprocessor> multiprocessor(int sm);

/// What one kernel needs.
struct KernelUse {
    std::uint32_t registers = 0;     ///< per thread
    std::uint32_t static_shared = 0; ///< bytes per block
    std::uint32_t max_dynamic_shared =
        0;                            ///< the kernel's current maximum, 49,152 - static by default
    std::uint32_t max_threads = 1024; ///< per block: CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    std::uint32_t barriers = 0;       ///< named barriers
};

/// 49,152 less the static part: what a kernel may ask before it is opted in to more.
std::uint32_t default_max_dynamic_shared(const Multiprocessor& mp, std::uint32_t static_shared);

/// Blocks of this size that fit on one multiprocessor together. 0 when the block can't run at all,
/// which includes a dynamic size above the kernel's current maximum; launch bounds are not looked
/// at (H200).
int max_active_blocks(const Multiprocessor& mp, const KernelUse& use, std::uint32_t block_size,
                      std::uint64_t dynamic_shared);

struct PotentialBlockSize {
    int grid_size;  ///< blocks that fill the device
    int block_size; ///< the one with the highest occupancy; the largest of equals
};

/// Bytes of dynamic shared memory that a block of a given size uses.
using DynamicSharedOfBlock = std::function<std::uint64_t(int block_size)>;

/// limit: the largest block size to consider, 0 for the kernel's own bound.
PotentialBlockSize potential_block_size(const Multiprocessor& mp, const KernelUse& use,
                                        std::uint32_t multiprocessor_count,
                                        const DynamicSharedOfBlock& dynamic_shared,
                                        std::uint32_t limit = 0);

/// Most dynamic shared memory per block with which that many blocks of that size still fit on one
/// multiprocessor, capped by the kernel's current maximum (H200). Nothing when they don't fit at
/// all.
std::optional<std::uint64_t> available_dynamic_shared(const Multiprocessor& mp,
                                                      const KernelUse& use, int blocks,
                                                      std::uint32_t block_size);

} // namespace cudamod::emulator
