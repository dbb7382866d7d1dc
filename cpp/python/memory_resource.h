#pragma once

#include "handles/memory_pool.h"
#include "python/instance.h"

#include <cstddef>

namespace cudamod::python {

/// Python's `MemoryResource`: the base of everything that gives Buffers, classes of Python too.
struct MemoryResource {};

/// A resource that is a memory pool: what DeviceMemoryResource, PinnedMemoryResource and
/// ManagedMemoryResource have in common. `handle` is empty once it is closed.
struct MemoryPool : MemoryResource {
    handles::MemoryPoolHandle handle;
    handles::PoolPlace place; // stays when it is closed
    bool owns, imported, exportable;

    MemoryPool(handles::MemoryPoolHandle open, bool owns_) : handle(std::move(open)), owns(owns_) {
        const auto& box = handles::box_of<handles::MemoryPoolBox>(handle);
        place = box.place;
        imported = box.imported;
        exportable = box.exportable;
    }
};

/// A resource without a pool, whose memory comes at once: pinned, or a device's that has no pools.
struct PlainMemory : MemoryResource {
    int device; // -1: pinned
};

/// The resource of a device's pool, where nobody set another: the one that `device_pool` answers.
nb::object standard_resource(int device);

/// The one that was set, or none.
nb::object chosen_resource(int device);

/// Makes a MemoryResource the device's. Throws TypeError for anything else, ValueError for one of
/// another device's memory, RuntimeError for a closed one.
void choose_resource(int device, nb::handle resource);

/// `size` bytes in the order of a stream, from a resource's pool.
nb::object allocate_from(nb::handle resource, nb::handle size, nb::handle stream);

/// Throws RuntimeError when the stream captures: an allocation would become a part of the graph.
void refuse_capture(const handles::StreamHandle& stream, const char* what);

} // namespace cudamod::python
