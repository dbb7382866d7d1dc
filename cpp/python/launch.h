#pragma once

#include "python/instance.h"
#include "python/launch_path.h"

namespace cudamod::python {

/// One launch with arguments on a stream that is resolved for it. New reference to None, or null
/// with an error set.

/// On a Stream, an object that stands for one, or CURRENT. `check`: configuration and stream come
/// together for the first time, so that the kernel has to be made ready.
PyObject* launch_on(PyObject* stream, const LaunchSource& source, const launch::Layout& layout,
                    const launch::Config& config, GilManner gil, bool check,
                    PyObject* const* arguments, std::size_t count);

PyObject* launch_on_current(const LaunchSource& source, const launch::Layout& layout,
                            const launch::Config& config, GilManner gil, PyObject* const* arguments,
                            std::size_t count);

/// What stands for an open stream that nobody can close.
const handles::StreamHandle& always_open();

/// The context in which a kernel's parameters are asked for, before a launch on that stream or on
/// CURRENT.
CUcontext context_for_layout(nb::handle stream);

/// A stream argument that may be CURRENT.
nb::object stream_or_current(nb::handle stream);

} // namespace cudamod::python
