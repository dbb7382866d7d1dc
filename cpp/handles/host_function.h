#pragma once

#include "handles/stream.h"

#include <cuda.h>

namespace cudamod::handles {

/// What the driver calls after all earlier work of a stream: once, or, in a graph under capture,
/// each time that it is launched. `release` tells that a captured one will not be called again.
/// Neither may call the driver.
struct HostFunction {
    CUhostFn run, release;
    void* data;
};

/// Gives the function to the driver; `captured` is set before it can run. On failure it throws, and
/// `data` is still the caller's unless it was captured.
void enqueue(const StreamHandle& stream, const HostFunction& function, bool& captured);

} // namespace cudamod::handles
