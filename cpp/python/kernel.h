#pragma once

#include "launch/kernel.h"
#include "python/instance.h"
#include "python/launcher_cache.h"

#include <memory>

namespace cudamod::python {

/// Python's `Kernel`. Its views are made once and hold the shared kernel, not the Python object.
struct Kernel {
    std::shared_ptr<const launch::Kernel> shared;
    nb::object attributes, occupancy;
    LauncherCache launchers;

    explicit Kernel(std::shared_ptr<const launch::Kernel> shared_) : shared(std::move(shared_)) {}
};

} // namespace cudamod::python
