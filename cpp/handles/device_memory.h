#pragma once

#include "handles/deferred_frees.h"
#include "handles/handle.h"
#include "handles/memory_pool.h"
#include "handles/stream.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <cstddef>
#include <memory>

namespace cudamod::handles {

/// Memory that kernels can use, its pool, and the stream in whose order it is freed.
struct DeviceMemoryBox {
    using Raw = CUdeviceptr;
    static constexpr const char* kKind = "device memory";
    Raw raw;
    std::size_t size;
    MemoryPoolHandle pool; ///< empty: cuMemAlloc's, or cuMemAllocHost's
    bool on_host;          ///< cuMemAllocHost's
    CUcontext context;     ///< where memory of no pool was allocated
    mutable StreamHandle free_on;
    std::shared_ptr<const MemoryImport> import; ///< of memory that another process exported
    Tracked tracked;

    DeviceMemoryBox(Raw raw_, std::size_t size_, MemoryPoolHandle pool_, bool on_host_,
                    CUcontext context_, StreamHandle free_on_,
                    std::shared_ptr<const MemoryImport> import_)
        : raw(raw_), size(size_), pool(std::move(pool_)), on_host(on_host_), context(context_),
          free_on(std::move(free_on_)), import(std::move(import_)) {}
    ~DeviceMemoryBox();
    Lifetime lifetime() const { return Lifetime::Owned; }
    std::vector<Dependency> dependencies() const {
        std::vector<Dependency> all;
        if (StreamHandle stream = free_on) all.push_back({StreamBox::kKind, value_of(*stream)});
        if (pool) all.push_back({MemoryPoolBox::kKind, value_of(*pool)});
        return all;
    }
    DeviceMemoryBox(const DeviceMemoryBox&) = delete;
    DeviceMemoryBox& operator=(const DeviceMemoryBox&) = delete;
};
using DeviceMemoryHandle = Handle<DeviceMemoryBox>;

/// `size` bytes of the pool, in the order of the stream, on which they are freed as well. Out of
/// memory unloads what is retired and tries once more. `size` must not be 0.
DeviceMemoryHandle allocate(const MemoryPoolHandle& pool, const StreamHandle& stream,
                            std::size_t size);

/// The same at once and without a pool, on the stream's device: for devices that have no pools.
DeviceMemoryHandle allocate_at_once(const StreamHandle& stream, std::size_t size);

/// `size` bytes of pinned memory of a context, at once. `stream` may be empty: it is waited for
/// before the memory is freed.
DeviceMemoryHandle allocate_pinned(CUcontext context, const StreamHandle& stream, std::size_t size);

/// Takes over memory that somebody allocated from the pool, or that was imported.
DeviceMemoryHandle adopt(const MemoryPoolHandle& pool, const StreamHandle& stream, CUdeviceptr raw,
                         std::size_t size, std::shared_ptr<const MemoryImport> import = {});

/// Frees memory, or defers that until its stream captures no more; reports what fails.
void free_memory(const DeferredFree& free) noexcept;

/// Frees memory of a pool that no handle owns, in the order of the stream; waits for that when the
/// pool is not known any more (an empty handle), since it may be destroyed at any moment.
void free_in_order(const MemoryPoolHandle& pool, const StreamHandle& stream, CUdeviceptr raw);

/// Frees memory of no pool that no handle owns, once the stream, which may be empty, has run.
void free_at_once(CUcontext context, const StreamHandle& stream, CUdeviceptr raw, bool on_host);

} // namespace cudamod::handles
