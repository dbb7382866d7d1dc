#pragma once

#include "handles/stream.h"
#include "launch/config.h"
#include "launch/kernel.h"

#include <cuda.h>

#include <cstdint>
#include <string>

namespace cudamod::launch {

/// How many blocks of the kernel, in that shape, the stream's device can run at once; a cooperative
/// launch may have no more. Throws DriverError.
std::uint64_t most_blocks_at_once(const Kernel& kernel, const Shape& shape,
                                  const handles::StreamBox& stream);

/// What is wrong with a launch that the driver refused, in terms of the limits that it exceeds;
/// empty when none is known. Asks the driver, never throws for its answers.
std::string explain(CUresult status, const Kernel& kernel, const Config& config,
                    const handles::StreamBox& stream);

} // namespace cudamod::launch
