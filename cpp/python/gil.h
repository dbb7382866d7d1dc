#pragma once

#include "python/instance.h"
#include "python/launch_path.h"

namespace cudamod::python {

/// The manner that "release", "auto" or "hold" names; None is the process's (CUDAMOD_GIL, else
/// release).
GilManner gil_manner(nb::handle name);

const char* name_of(GilManner manner);

/// The process's manner.
GilManner default_gil_manner();

} // namespace cudamod::python
