#pragma once

#include "python/gil.h"
#include "python/instance.h"
#include "python/launch_config.h"

#include <memory>

namespace cudamod::python {

/// A kernel bound to a configuration and a stream: Python's `Launcher`, called with the kernel's
/// arguments.
nb::object make_launcher(std::shared_ptr<const launch::Kernel> kernel,
                         std::shared_ptr<const launch::Layout> layout, nb::object config,
                         nb::object stream, GilManner gil);

/// The parameters by which a launcher packs: the kernel's own, or by a signature (text or a
/// sequence of types).
std::shared_ptr<const launch::Layout>
layout_for(const std::shared_ptr<const launch::Kernel>& kernel, nb::handle signature,
           CUcontext context);

/// What a launch of that shape needs of the kernel, the driver and the stream: dynamic shared
/// memory is opted in, the driver must know the attributes, a cooperative grid must be able to run
/// at once. Throws std::invalid_argument, DriverError.
void make_ready(const launch::Kernel& kernel, const launch::Shape& shape,
                const handles::StreamBox& stream);

} // namespace cudamod::python
