#pragma once

#include "handles/memory_pool.h"
#include "python/instance.h"

namespace cudamod::python {

/// Python's `MemoryPoolAttributes`: a view of a pool, which it keeps alive.
struct MemoryPoolAttributes {
    handles::MemoryPoolHandle pool;
};

} // namespace cudamod::python
