#pragma once

#include "handles/stream.h"

#include <cuda.h>

#include <atomic>

namespace cudamod::handles {

/// How many host functions of ours the driver has and may still run; one in a graph counts until
/// the graph and its executables are gone. While it is not 0, a launch that waits for a full queue
/// may wait for one of them.
extern std::atomic<long> pending_host_functions;

/// What the driver calls after all earlier work of a stream: once, or, in a graph under capture,
/// each time that it is launched. `release` tells that a captured one will not be called again.
/// Neither may call the driver.
struct HostFunction {
    CUhostFn run, release;
    void* data;
};

/// Gives the function to the driver; `captured` is set before it can run. On failure it throws, and
/// `data` is still the caller's unless it was captured. It counts as pending until `finished`.
void enqueue(const StreamHandle& stream, const HostFunction& function, bool& captured);

/// The function has run for the only time, or was released.
inline void finished() {
    pending_host_functions.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace cudamod::handles
