#pragma once

#include "python/instance.h"

#include <cuda.h>

namespace cudamod::python {

/// Python's `Context`: a context and its device.
struct Context {
    CUcontext raw;
    int device;
};

void bind_context(nb::module_& module);

} // namespace cudamod::python
