#pragma once

#include "handles/memory_pool.h"
#include "python/memory_resource.h"

namespace cudamod::python {

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

/// The pool of an open resource; throws RuntimeError for a closed one.
const handles::MemoryPoolHandle& open_pool(nb::handle resource);

} // namespace cudamod::python
