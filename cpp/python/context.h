#pragma once

#include "python/instance.h"

#include <cuda.h>

namespace cudamod::python {

/// Python's `Context`: a context and its device.
struct Context {
    CUcontext raw;
    int device;
};

} // namespace cudamod::python
