#pragma once

#include <cuda.h>

#include <optional>

namespace cudamod::handles {

/// A capture in progress. Its id is never reused.
struct CaptureInProgress {
    cuuint64_t id;
    CUgraph graph;
};

/// The capture that the stream is part of, or none; none either for an invalidated one and for the
/// legacy stream, which can't be captured.
std::optional<CaptureInProgress> capture_of(CUstream stream);

/// Lets a graph keep `data`: `release` is called on a thread of the driver's when the graph and its
/// executables are gone. It may not call the driver. On failure it throws, and the caller keeps
/// `data`.
void retain(CUgraph graph, void* data, CUhostFn release);

} // namespace cudamod::handles
