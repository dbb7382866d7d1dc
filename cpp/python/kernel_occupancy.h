#pragma once

#include "launch/kernel.h"
#include "python/instance.h"

#include <memory>

namespace cudamod::python {

/// Python's `KernelOccupancy`: the driver's occupancy answers for a kernel on the current device.
struct KernelOccupancy {
    std::shared_ptr<const launch::Kernel> kernel;
};

} // namespace cudamod::python
