#pragma once

#include "launch/config.h"
#include "python/instance.h"

#include <optional>

namespace cudamod::python {

/// Python's `LaunchConfig` is the native configuration itself.
using LaunchConfig = launch::Config;

/// Three dimensions from an int or a tuple of up to three ints. `what` names them in errors
/// ("grid").
launch::Dim3 dimensions(nb::handle value, const char* what);

/// Bytes of dynamic shared memory from an int or None (0).
unsigned shared_bytes(nb::handle value);

} // namespace cudamod::python
