#pragma once

#include "handles/memory_pool.h"
#include "handles/stream.h"

#include <cuda.h>

#include <memory>
#include <optional>

namespace cudamod::handles {

class MemoryImport;
struct MemoryImportKey;

/// How memory is freed: cuMemFreeAsync, cuMemFree or cuMemFreeHost.
enum class FreeManner { InOrder, AtOnce, OnHost };

/// Memory without handles, and what its end needs.
struct DeferredFree {
    CUdeviceptr raw;
    FreeManner manner;
    CUcontext context;
    StreamHandle stream;   ///< in whose order, or that is waited for; may be empty then
    MemoryPoolHandle pool; ///< empty: not known any more, or none
    std::shared_ptr<const MemoryImport> import; ///< of memory that another process exported
};

/// Whether work in the stream would now become part of a graph, or would spoil one: it captures, or
/// is the legacy stream of a context in which a blocking stream does. Its context is current.
bool is_captured(const StreamHandle& stream) noexcept;

/// Keeps it until its stream, which this does not keep alive, captures no more or is gone. False
/// when there is no room to remember it.
bool defer_free(DeferredFree free) noexcept;

/// Takes the free of imported memory back, if it is one of those that wait; without its stream if
/// nobody has that any more.
std::optional<DeferredFree> take_deferred_free(const MemoryImportKey& key) noexcept;

/// Frees what was deferred, but for what must still wait. Calls the driver only when there is any.
void free_deferred() noexcept;

} // namespace cudamod::handles
