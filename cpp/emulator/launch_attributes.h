#pragma once

#include "emulator/launch.h"

namespace cudamod::emulator {

/// Reads a request's attributes into the launch, each checked by itself: a driver that is too old
/// for one, or a value outside its range, answers CUDA_ERROR_INVALID_VALUE.
void read_attributes(const LaunchRequest& request, const Device& device, ValidLaunch& launch);

/// The preferred cluster, against the cluster and the grid that are known by now.
void require_preferred_cluster(const KernelView& view, const ValidLaunch& launch);

} // namespace cudamod::emulator
