#pragma once

#include "handles/handle.h"
#include "handles/pending_frees.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace cudamod::handles {

enum class PoolKind { Device, Pinned, Managed };

/// Where a pool's memory lies.
struct PoolPlace {
    PoolKind kind;
    CUmemLocationType location;
    int id; ///< device or NUMA node; -1 where the location needs none
};

/// What a pool's destruction has to heed. An imported pool's boxes share it, one after another.
struct PoolEnd {
    PendingFrees frees;
    std::atomic<bool> has_peers{false}; ///< access was given to a device, by us
};

/// A pool of stream-ordered memory. One that we own is destroyed when nothing from it is alive and
/// its frees are done.
struct MemoryPoolBox {
    using Raw = CUmemoryPool;
    static constexpr const char* kKind = "memory pool";
    Raw raw;
    PoolPlace place;
    bool owned;      ///< destroyed with the box
    bool imported;   ///< from another process: it gives addresses of its exporter's memory only
    bool exportable; ///< to other processes
    std::shared_ptr<PoolEnd> end;
    mutable std::atomic<bool> exported{false}; ///< without which its memory can't be
    Tracked tracked;

    MemoryPoolBox(Raw raw_, PoolPlace place_, bool owned_, bool imported_, bool exportable_,
                  std::shared_ptr<PoolEnd> end_ = std::make_shared<PoolEnd>())
        : raw(raw_), place(place_), owned(owned_), imported(imported_), exportable(exportable_),
          end(std::move(end_)) {}
    ~MemoryPoolBox();
    Lifetime lifetime() const { return owned ? Lifetime::Owned : Lifetime::Process; }
    std::vector<Dependency> dependencies() const { return {}; }
    MemoryPoolBox(const MemoryPoolBox&) = delete;
    MemoryPoolBox& operator=(const MemoryPoolBox&) = delete;

    /// The device that the memory lies on; -1 for memory that every device reaches.
    int device() const { return place.kind == PoolKind::Device ? place.id : -1; }
};
using MemoryPoolHandle = Handle<MemoryPoolBox>;

/// A new pool. `max_size` 0 is the driver's limit. Every device reaches a pinned pool's memory.
MemoryPoolHandle create_pool(const PoolPlace& place, bool exportable, std::size_t max_size);

/// The pool that the driver takes at a place unless told otherwise; or our own, when it is one of
/// ours. Its release threshold is raised from 0, with which each synchronisation gives all unused
/// memory back to the system.
MemoryPoolHandle current_pool(const PoolPlace& place);

/// The current pool of a device when it was first asked for; empty where the device has no pools.
MemoryPoolHandle device_pool(int device);

/// The pool behind a file descriptor of another process's export.
MemoryPoolHandle import_pool(const PoolPlace& place, int file);

/// A new file descriptor by which another process imports the pool.
int export_pool(const MemoryPoolHandle& pool);

/// Whether the device may read and write the pool's memory.
bool has_access(const MemoryPoolHandle& pool, int device);

/// Gives devices access to the pool's memory, or takes it from them, in one driver call.
void set_access(const MemoryPoolHandle& pool, const std::vector<int>& given,
                const std::vector<int>& taken);

/// Destroys the pools that waited for their last frees; with `wait` until those are done. Answers
/// how many.
std::size_t reclaim_pools(bool wait) noexcept;

/// "memory pool 0x...".
std::string describe_pool(const MemoryPoolHandle& pool);

} // namespace cudamod::handles
