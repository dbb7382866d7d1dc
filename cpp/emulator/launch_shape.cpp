#include "emulator/device.h"
#include "emulator/failure.h"
#include "emulator/launch.h"
#include "emulator/launch_attributes.h"
#include "emulator/occupancy_of.h"

#include <cinttypes>

namespace cudamod::emulator {
namespace {

constexpr char kAxes[] = {'X', 'Y', 'Z'};

std::uint64_t product(const std::array<std::uint32_t, 3>& dimensions) {
    return std::uint64_t{dimensions[0]} * dimensions[1] * dimensions[2];
}

void require_dimensions(const LaunchRequest& request, const Profile& profile,
                        const KernelCode& kernel) {
    const auto limits = [&](CUdevice_attribute x) {
        return std::array<int, 3>{profile.attribute(x), profile.attribute(x + 1),
                                  profile.attribute(x + 2)};
    };
    const auto block_limits = limits(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    const auto grid_limits = limits(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    for (int axis = 0; axis < 3; ++axis) {
        if (!request.grid[axis])
            fail(CUDA_ERROR_INVALID_VALUE, "Grid Dimension %c must be nonzero (kernel '%s')",
                 kAxes[axis], kernel.name.c_str());
        if (!request.block[axis])
            fail(CUDA_ERROR_INVALID_VALUE, "Block Dimension %c must be nonzero (kernel '%s')",
                 kAxes[axis], kernel.name.c_str());
    }
    for (int axis = 0; axis < 3; ++axis) {
        if (request.block[axis] > static_cast<std::uint32_t>(block_limits[axis])) {
            fail(CUDA_ERROR_INVALID_VALUE,
                 "Block dimensions (%u,%u,%u) exceed the largest (%d,%d,%d) (kernel '%s')",
                 request.block[0], request.block[1], request.block[2], block_limits[0],
                 block_limits[1], block_limits[2], kernel.name.c_str());
        }
        if (request.grid[axis] > static_cast<std::uint32_t>(grid_limits[axis])) {
            fail(CUDA_ERROR_INVALID_VALUE,
                 "Grid dimensions (%u,%u,%u) exceed the largest (%d,%d,%d) (kernel '%s')",
                 request.grid[0], request.grid[1], request.grid[2], grid_limits[0], grid_limits[1],
                 grid_limits[2], kernel.name.c_str());
        }
    }
    const std::uint64_t threads = product(request.block);
    const int most = profile.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    if (threads > static_cast<std::uint64_t>(most)) {
        fail(CUDA_ERROR_INVALID_VALUE,
             "%" PRIu64 " threads per block exceed the device's %d (kernel '%s')", threads, most,
             kernel.name.c_str());
    }
    if (threads > kernel.max_threads) {
        fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
             "%" PRIu64 " threads per block exceed the %u that kernel '%s' was compiled for",
             threads, kernel.max_threads, kernel.name.c_str());
    }
    if (kernel.required_threads[0] && request.block != kernel.required_threads) {
        fail(CUDA_ERROR_INVALID_VALUE, "Kernel '%s' requires blocks of (%u,%u,%u), not (%u,%u,%u)",
             kernel.name.c_str(), kernel.required_threads[0], kernel.required_threads[1],
             kernel.required_threads[2], request.block[0], request.block[1], request.block[2]);
    }
}

void require_shared(const LaunchRequest& request, const KernelView& view) {
    if (request.dynamic_shared > static_cast<std::uint32_t>(view.settings->max_dynamic_shared)) {
        fail(CUDA_ERROR_INVALID_VALUE,
             "Requested dynamic shared memory size of %u bytes exceeds maximum dynamic shared "
             "memory size of %d bytes (kernel '%s')",
             request.dynamic_shared, view.settings->max_dynamic_shared, view.kernel->name.c_str());
    }
}

void require_cluster(const LaunchRequest& request, const KernelView& view, ValidLaunch& launch) {
    const std::array<std::uint32_t, 3> fixed{static_cast<std::uint32_t>(view.settings->cluster[0]),
                                             static_cast<std::uint32_t>(view.settings->cluster[1]),
                                             static_cast<std::uint32_t>(view.settings->cluster[2])};
    if (product(fixed)) {
        if (launch.cluster[0] && launch.cluster != fixed) {
            fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                 "Kernel '%s' has cluster dimensions (%u,%u,%u), not (%u,%u,%u)",
                 view.kernel->name.c_str(), fixed[0], fixed[1], fixed[2], launch.cluster[0],
                 launch.cluster[1], launch.cluster[2]);
        }
        launch.cluster = fixed;
    }
    if (!launch.cluster[0]) {
        if (view.kernel->explicit_cluster)
            fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "Kernel '%s' must be given a cluster size",
                 view.kernel->name.c_str());
        return;
    }
    const Profile& profile = *view.device->profile;
    if (!profile.max_cluster)
        fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no clusters", profile.architecture.c_str());
    const int most = profile.max_cluster * (view.settings->non_portable_cluster ? 2 : 1);
    if (product(launch.cluster) > static_cast<std::uint64_t>(most)) {
        fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
             "A cluster of (%u,%u,%u) exceeds %d blocks (kernel '%s')", launch.cluster[0],
             launch.cluster[1], launch.cluster[2], most, view.kernel->name.c_str());
    }
    for (int axis = 0; axis < 3; ++axis) {
        if (request.grid[axis] % launch.cluster[axis]) {
            fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                 "Grid dimension %c of %u is no multiple of the cluster's %u (kernel '%s')",
                 kAxes[axis], request.grid[axis], launch.cluster[axis], view.kernel->name.c_str());
        }
    }
}

void require_cooperative(const LaunchRequest& request, const KernelView& view) {
    const auto fitting =
        static_cast<std::uint64_t>(
            active_blocks(view, static_cast<int>(product(request.block)), request.dynamic_shared)) *
        static_cast<std::uint64_t>(
            view.device->profile->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    if (product(request.grid) > fitting) {
        fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
             "A cooperative grid of %" PRIu64 " blocks exceeds the %" PRIu64
             " that fit at once (kernel '%s')",
             product(request.grid), fitting, view.kernel->name.c_str());
    }
}

} // namespace

void validate_shape(const LaunchRequest& request, const KernelView& view, ValidLaunch& launch) {
    read_attributes(request, *view.device, launch);
    require_dimensions(request, *view.device->profile, *view.kernel);
    require_shared(request, view);
    require_cluster(request, view, launch);
    if (launch.cooperative) require_cooperative(request, view);
    launch.grid = request.grid;
    launch.block = request.block;
    launch.dynamic_shared = request.dynamic_shared;
    require_preferred_cluster(view, launch);
}

} // namespace cudamod::emulator
