#pragma once

#include "emulator/api.h"
#include "emulator/module.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cudamod::emulator {

struct Context;
struct Stream;

/// A launch as its caller asked for it.
struct LaunchRequest {
    CUfunction function = nullptr;
    std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
    std::uint32_t dynamic_shared = 0;
    CUstream stream = nullptr;
    void** parameters = nullptr;
    void** extra = nullptr;
    const CUlaunchAttribute* attributes = nullptr;
    unsigned attribute_count = 0;
};

/// What a launch request comes to once it is found valid; owns what it runs with.
struct ValidLaunch {
    std::shared_ptr<Function> function;
    std::shared_ptr<Stream> stream;
    std::array<std::uint32_t, 3> grid{}, block{}, cluster{}, preferred_cluster{}; ///< zeros without
    std::uint32_t dynamic_shared = 0;
    bool cooperative = false;
    std::vector<std::byte> parameters;
    std::vector<CUlaunchAttribute> attributes; ///< all, as they were given
    CUevent programmatic_event = nullptr, completion_event = nullptr;
};

/// Grid, block, shared memory, cluster and attributes against the kernel and the device. Fails with
/// the card's statuses. Fills what does not concern the stream or the parameters.
void validate_shape(const LaunchRequest& request, const KernelView& view, ValidLaunch& launch);

/// Validates all of a request but its stream, for a context to run in, under the driver's lock.
ValidLaunch validate_in(const LaunchRequest& request, const std::shared_ptr<Context>& context);

/// Validates the whole request under the driver's lock.
ValidLaunch validate(const LaunchRequest& request);

/// Appends a valid launch to its stream; as Stream::push().
void push(ValidLaunch launch);

/// Enqueues a valid launch. The caller does not hold the driver's lock.
void run(ValidLaunch launch);

} // namespace cudamod::emulator
