#pragma once

#include "handles/memory_pool.h"
#include "handles/stream.h"

#include <cuda.h>

#include <cstddef>

namespace cudamod::handles {

/// How memory is freed: cuMemFreeAsync, cuMemFree or cuMemFreeHost.
enum class FreeManner { InOrder, AtOnce, OnHost };

/// Memory without handles, and what its end needs.
struct DeferredFree {
    CUdeviceptr raw;
    FreeManner manner;
    CUcontext context;
    StreamHandle stream;   ///< in whose order, or that is waited for; may be empty then
    MemoryPoolHandle pool; ///< empty: not known any more, or none
};

/// Whether work in the stream would now become part of a graph, or would spoil one: it captures, or
/// is the legacy stream of a context in which a blocking stream does. Its context is current.
bool is_captured(const StreamHandle& stream) noexcept;

/// Keeps it until its stream captures no more. False when there is no room to remember it.
bool defer_free(DeferredFree free) noexcept;

/// Frees what was deferred, but for what must still wait. Calls the driver only when there is any.
void free_deferred() noexcept;

} // namespace cudamod::handles
