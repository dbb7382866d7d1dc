#pragma once

#include "python/gil.h"
#include "python/instance.h"
#include "python/launch_config.h"

#include <memory>

namespace cudamod::python {

/// A kernel bound to a configuration and a stream (or CURRENT): Python's `Launcher`, called with
/// the kernel's arguments. Throws as make_ready does, and RuntimeError for a closed stream.
nb::object make_launcher(std::shared_ptr<const launch::Kernel> kernel,
                         std::shared_ptr<const launch::Layout> layout, nb::object config,
                         nb::object stream, GilManner gil, nb::object metadata);

/// The parameters by which a launcher packs: the kernel's own, or by a signature (text or a
/// sequence of types).
std::shared_ptr<const launch::Layout>
layout_for(const std::shared_ptr<const launch::Kernel>& kernel, nb::handle signature,
           CUcontext context);

/// What a Launcher on a stream launches with, as long as the Launcher lives. Null for any other
/// object, without an error; null with an error set for a closed stream and for CURRENT.
const LaunchParts* parts_of_launcher(PyObject* object);

} // namespace cudamod::python
