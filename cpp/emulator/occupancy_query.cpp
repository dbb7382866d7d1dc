#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/launch.h"
#include "emulator/module.h"
#include "emulator/occupancy_of.h"

#include <optional>

using namespace cudamod::emulator;

namespace {

KernelView view_in_context(CUfunction handle) {
    current_context();
    return find_function(handle)->view;
}

void require_block_size(int block_size) {
    if (block_size <= 0)
        fail(CUDA_ERROR_INVALID_VALUE, "A block size of %d threads was asked about", block_size);
}

void require_flags(unsigned flags) {
    if (flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)) {
        fail(CUDA_ERROR_INVALID_VALUE, "Occupancy flags 0x%x are unknown", flags);
    }
}

void query_active_blocks(int* blocks, CUfunction function, int block_size,
                         std::size_t dynamic_shared, unsigned flags) {
    require_pointer(blocks, "the number of blocks");
    require_flags(flags);
    const auto view = view_in_context(function);
    require_block_size(block_size);
    *blocks = active_blocks(view, block_size, dynamic_shared);
}

void query_potential(int* grid, int* block, CUfunction function, CUoccupancyB2DSize size_of_block,
                     std::size_t dynamic_shared, int limit, unsigned flags) {
    require_pointer(grid, "the grid size");
    require_pointer(block, "the block size");
    require_flags(flags);
    std::unique_lock lock(driver_mutex());
    const auto view = view_in_context(function);
    if (limit < 0) fail(CUDA_ERROR_INVALID_VALUE, "A block size limit of %d was given", limit);
    const Multiprocessor multiprocessor = multiprocessor_of(view);
    const KernelUse use = use_of(view);
    const int count = view.device->profile->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    // The caller's function may call the driver.
    lock.unlock();
    const auto best = potential_block_size(
        multiprocessor, use, static_cast<std::uint32_t>(count),
        [&](int size) {
            return size_of_block ? static_cast<std::uint64_t>(size_of_block(size)) : dynamic_shared;
        },
        static_cast<std::uint32_t>(limit));
    *grid = best.grid_size;
    *block = best.block_size;
}

/// Validates what a cluster query describes; the stream takes no part in it.
ValidLaunch shape_of(const KernelView& view, const CUlaunchConfig& config, bool cluster_given) {
    LaunchRequest request;
    request.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
    request.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
    request.dynamic_shared = config.sharedMemBytes;
    request.attributes = config.attrs;
    request.attribute_count = config.numAttrs;
    ValidLaunch launch;
    validate_shape(request, view, launch);
    if (cluster_given && !launch.cluster[0]) launch.cluster = {1, 1, 1};
    return launch;
}

} // namespace

CUDAMOD_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                        int block_size, size_t dynamic_shared) {
    return locked_call(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        [&] { query_active_blocks(blocks, function, block_size, dynamic_shared, 0); }, blocks,
        function, block_size, dynamic_shared);
}

CUDAMOD_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                                 int block_size,
                                                                 size_t dynamic_shared,
                                                                 unsigned int flags) {
    return locked_call(
        "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        [&] { query_active_blocks(blocks, function, block_size, dynamic_shared, flags); }, blocks,
        function, block_size, dynamic_shared, flags);
}

CUDAMOD_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                             CUoccupancyB2DSize size_of_block,
                                             size_t dynamic_shared, int limit) {
    return unlocked_call(
        "cuOccupancyMaxPotentialBlockSize",
        [&] { query_potential(grid, block, function, size_of_block, dynamic_shared, limit, 0); },
        grid, block, function, size_of_block, dynamic_shared, limit);
}

CUDAMOD_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                      CUoccupancyB2DSize size_of_block,
                                                      size_t dynamic_shared, int limit,
                                                      unsigned int flags) {
    return unlocked_call(
        "cuOccupancyMaxPotentialBlockSizeWithFlags",
        [&] {
            query_potential(grid, block, function, size_of_block, dynamic_shared, limit, flags);
        },
        grid, block, function, size_of_block, dynamic_shared, limit, flags);
}

CUDAMOD_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks,
                                                    int block_size) {
    return locked_call(
        "cuOccupancyAvailableDynamicSMemPerBlock",
        [&] {
            require_pointer(bytes, "the size");
            const auto view = view_in_context(function);
            require_block_size(block_size);
            if (blocks <= 0) fail(CUDA_ERROR_INVALID_VALUE, "%d blocks were asked about", blocks);
            const auto available =
                available_dynamic_shared(multiprocessor_of(view), use_of(view), blocks,
                                         static_cast<std::uint32_t>(block_size));
            if (!available) {
                fail(CUDA_ERROR_INVALID_VALUE,
                     "%d blocks of %d threads of kernel '%s' do not fit on one multiprocessor",
                     blocks, block_size, view.kernel->name.c_str());
            }
            *bytes = *available;
        },
        bytes, function, blocks, block_size);
}

CUDAMOD_API cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                               const CUlaunchConfig* config) {
    return locked_call(
        "cuOccupancyMaxPotentialClusterSize",
        [&] {
            require_pointer(size, "the cluster size");
            require_pointer(config, "the configuration");
            const auto view = view_in_context(function);
            shape_of(view, *config, false);
            const int portable = view.device->profile->max_cluster;
            if (!portable)
                fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no clusters",
                     view.device->profile->architecture.c_str());
            *size = portable * (view.settings->non_portable_cluster ? 2 : 1);
        },
        size, function, config);
}

CUDAMOD_API cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                         const CUlaunchConfig* config) {
    return locked_call(
        "cuOccupancyMaxActiveClusters",
        [&] {
            require_pointer(clusters, "the number of clusters");
            require_pointer(config, "the configuration");
            const auto view = view_in_context(function);
            const ValidLaunch shape = shape_of(view, *config, true);
            if (!view.device->profile->max_cluster)
                fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no clusters",
                     view.device->profile->architecture.c_str());
            const int blocks = active_blocks(
                view, static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]),
                shape.dynamic_shared);
            const int multiprocessors =
                view.device->profile->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
            // Clusters share one group of multiprocessors; how those groups are made is not public,
            // so this is an upper bound.
            *clusters = blocks * multiprocessors /
                        static_cast<int>(shape.cluster[0] * shape.cluster[1] * shape.cluster[2]);
        },
        clusters, function, config);
}
