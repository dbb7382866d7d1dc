#pragma once

#include "emulator/api.h"
#include "emulator/profile.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace cudamod::emulator {

struct Context;
struct Pool;

struct Device {
    int ordinal = 0;
    const Profile* profile = nullptr;
    CUuuid uuid{};
    std::size_t total_bytes = 0, used_bytes = 0;
    std::shared_ptr<Context>
        primary; ///< one object for the life of the process; active while retained
    std::shared_ptr<Pool> default_pool, current_pool;
};

/// All devices, by ordinal. Empty before cuInit.
const std::vector<std::unique_ptr<Device>>& devices();

/// From CUDAMOD_EMULATOR_DEVICES; called once, by cuInit.
void create_devices();

/// The device of an ordinal; fails with CUDA_ERROR_INVALID_DEVICE.
Device& device_at(CUdevice ordinal);

} // namespace cudamod::emulator
