#include "emulator/occupancy.h"

#include <algorithm>

namespace cudamod::emulator {
namespace {

constexpr std::uint32_t kKiB = 1024;
constexpr std::uint32_t kReserved = 1 * kKiB; // per block, from compute capability 8.0 on

std::uint64_t ceil_to(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

std::uint32_t warps_of(const Multiprocessor& mp, std::uint32_t block_size) {
    return block_size / mp.warp_size + (block_size % mp.warp_size != 0);
}

/// Blocks of so many warps whose registers fit; warps live in one partition each.
std::uint64_t limit_by_registers(const Multiprocessor& mp, const KernelUse& use,
                                 std::uint32_t warps) {
    if (use.registers == 0) return mp.blocks;
    if (use.registers > mp.registers_per_thread) return 0;
    const auto per_warp = ceil_to(std::uint64_t{use.registers} * mp.warp_size, mp.register_unit);
    if (per_warp * ceil_to(warps, mp.partitions) > mp.registers_per_block) return 0;
    return mp.registers / mp.partitions / per_warp * mp.partitions / warps;
}

std::uint64_t limit_by_shared(const Multiprocessor& mp, const KernelUse& use,
                              std::uint64_t dynamic_shared) {
    const std::uint64_t asked = use.static_shared + dynamic_shared;
    if (asked > mp.shared_per_block_optin) return 0;
    const std::uint64_t allocated = ceil_to(asked + mp.reserved_shared, mp.shared_unit);
    return allocated == 0 ? mp.blocks : mp.shared_bytes / allocated;
}

} // namespace

std::optional<Multiprocessor> multiprocessor(int sm) {
    struct Row {
        int sm;
        std::uint32_t threads, blocks, shared_kib, optin_kib, barriers;
    };
    // CUDA programming guide, technical specifications per compute capability; barriers per
    // multiprocessor inferred.
    static constexpr Row kRows[] = {
        {75, 1024, 16, 64, 64, 0},     {80, 2048, 32, 164, 163, 0},   {86, 1536, 16, 100, 99, 0},
        {87, 1536, 16, 164, 163, 0},   {88, 1536, 16, 100, 99, 0},    {89, 1536, 24, 100, 99, 0},
        {90, 2048, 32, 228, 227, 64},  {100, 2048, 32, 228, 227, 64}, {103, 2048, 32, 228, 227, 32},
        {110, 1536, 24, 228, 227, 24}, {120, 1536, 24, 100, 99, 24},  {121, 1536, 24, 100, 99, 24},
    };
    for (const Row& row : kRows) {
        if (row.sm != sm) continue;
        Multiprocessor mp{};
        mp.threads = row.threads;
        mp.blocks = row.blocks;
        mp.shared_bytes = row.shared_kib * kKiB;
        mp.shared_per_block_optin = row.optin_kib * kKiB;
        mp.reserved_shared = sm >= 80 ? kReserved : 0;
        mp.shared_unit = sm >= 80 ? 128 : 256;
        mp.barriers = row.barriers;
        return mp;
    }
    return std::nullopt;
}

std::uint32_t default_max_dynamic_shared(const Multiprocessor& mp, std::uint32_t static_shared) {
    return mp.shared_per_block - std::min(mp.shared_per_block, static_shared);
}

int max_active_blocks(const Multiprocessor& mp, const KernelUse& use, std::uint32_t block_size,
                      std::uint64_t dynamic_shared) {
    if (block_size == 0 || block_size > mp.threads_per_block) return 0;
    if (dynamic_shared > use.max_dynamic_shared) return 0;
    const std::uint32_t warps = warps_of(mp, block_size);
    std::uint64_t blocks = std::min<std::uint64_t>(mp.blocks, mp.threads / mp.warp_size / warps);
    blocks = std::min(blocks, limit_by_registers(mp, use, warps));
    blocks = std::min(blocks, limit_by_shared(mp, use, dynamic_shared));
    if (mp.barriers != 0 && use.barriers != 0) {
        blocks = std::min<std::uint64_t>(blocks, mp.barriers / use.barriers);
    }
    return static_cast<int>(blocks);
}

PotentialBlockSize potential_block_size(const Multiprocessor& mp, const KernelUse& use,
                                        std::uint32_t multiprocessor_count,
                                        const DynamicSharedOfBlock& dynamic_shared,
                                        std::uint32_t limit) {
    std::uint32_t largest = std::min(use.max_threads, mp.threads_per_block);
    if (limit != 0) largest = std::min(largest, limit);
    PotentialBlockSize best{0, 0};
    std::uint32_t best_threads = 0;
    for (auto aligned = static_cast<std::uint32_t>(ceil_to(largest, mp.warp_size)); aligned > 0;
         aligned -= mp.warp_size) {
        const std::uint32_t size = std::min(aligned, largest);
        const int blocks = max_active_blocks(mp, use, size, dynamic_shared(static_cast<int>(size)));
        const std::uint32_t threads = size * static_cast<std::uint32_t>(blocks);
        if (threads > best_threads) {
            best_threads = threads;
            best = {blocks * static_cast<int>(multiprocessor_count), static_cast<int>(size)};
        }
        if (best_threads == mp.threads) break;
    }
    return best;
}

std::optional<std::uint64_t> available_dynamic_shared(const Multiprocessor& mp,
                                                      const KernelUse& use, int blocks,
                                                      std::uint32_t block_size) {
    if (blocks <= 0 || blocks > max_active_blocks(mp, use, block_size, 0)) return std::nullopt;
    const std::uint64_t each =
        mp.shared_bytes / static_cast<std::uint32_t>(blocks) / mp.shared_unit * mp.shared_unit;
    // The reserved part isn't subtracted: that is what driver 580 answers (later ones do).
    const std::uint64_t left = each > use.static_shared ? each - use.static_shared : 0;
    return std::min<std::uint64_t>(left, use.max_dynamic_shared);
}

} // namespace cudamod::emulator
