// Occupancy against NVIDIA's own calculation, whose header is used where a toolkit has installed
// it: random kernels and launches on every architecture.
#include "check.h"

#include "emulator/occupancy.h"

#include <cstdio>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>

#include <algorithm>
#include <random>

using namespace cudamod::emulator;

namespace {

constexpr int kCases = 20'000, kMultiprocessors = 100;

std::mt19937 random_numbers(7);

std::uint32_t below(std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_numbers);
}

cudaOccDeviceProp properties_of(const Multiprocessor& mp, int sm) {
    cudaOccDeviceProp device{};
    device.computeMajor = sm / 10;
    device.computeMinor = sm % 10;
    device.maxThreadsPerBlock = static_cast<int>(mp.threads_per_block);
    device.maxThreadsPerMultiprocessor = static_cast<int>(mp.threads);
    device.regsPerBlock = static_cast<int>(mp.registers_per_block);
    device.regsPerMultiprocessor = static_cast<int>(mp.registers);
    device.warpSize = static_cast<int>(mp.warp_size);
    device.sharedMemPerBlock = mp.shared_per_block;
    device.sharedMemPerMultiprocessor = mp.shared_bytes;
    device.numSms = kMultiprocessors;
    device.sharedMemPerBlockOptin = mp.shared_per_block_optin;
    device.reservedSharedMemPerBlock = mp.reserved_shared;
    return device;
}

cudaOccFuncAttributes attributes_of(const KernelUse& use) {
    cudaOccFuncAttributes kernel{};
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = static_cast<int>(use.registers);
    kernel.sharedSizeBytes = use.static_shared;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = use.max_dynamic_shared;
    kernel.numBlockBarriers = static_cast<int>(use.barriers);
    return kernel;
}

std::size_t no_dynamic(int) {
    return 0;
}

void check_architecture(int sm) {
    const auto mp = *multiprocessor(sm);
    const cudaOccDeviceProp device = properties_of(mp, sm);
    const cudaOccDeviceState state{};
    for (int n = 0; n < kCases; ++n) {
        KernelUse use;
        use.registers = below(mp.registers_per_thread + 1);
        use.static_shared = below(2) ? 0 : below(mp.shared_per_block + 1);
        use.max_dynamic_shared = mp.shared_per_block_optin - use.static_shared;
        // The headers of CUDA 13.0 and 13.5 differ about the barriers of 10.3.
        use.barriers = sm == 103 ? 0 : below(17);
        const auto block = static_cast<int>(1 + below(1024));
        const std::size_t dynamic = below(2) ? 0 : below(use.max_dynamic_shared + 1);
        const cudaOccFuncAttributes kernel = attributes_of(use);

        cudaOccResult result{};
        const cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &kernel, &state, block, dynamic);
        CHECK_EQ(status, CUDA_OCC_SUCCESS);
        const int found = max_active_blocks(mp, use, static_cast<std::uint32_t>(block), dynamic);
        if (found != result.activeBlocksPerMultiprocessor) {
            std::printf("sm_%d: %u registers, %u + %zu bytes, %u barriers, %d threads\n", sm,
                        use.registers, use.static_shared, dynamic, use.barriers, block);
        }
        CHECK_EQ(found, result.activeBlocksPerMultiprocessor);
        if (n % 20 != 0) continue;
        int grid = 0, best = 0;
        cudaOccMaxPotentialOccupancyBlockSize(&grid, &best, &device, &kernel, &state, no_dynamic,
                                              0);
        const auto potential =
            potential_block_size(mp, use, kMultiprocessors, [](int) { return std::uint64_t{0}; });
        CHECK_EQ(potential.block_size, best);
        CHECK_EQ(potential.grid_size, grid);
    }
}

} // namespace

int main() {
    for (const int sm : {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121})
        check_architecture(sm);
    return check::failures();
}
#else
int main() {
    std::puts("no cuda_occupancy.h here");
}
#endif
