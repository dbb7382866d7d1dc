#pragma once

#include "handles/stream.h"
#include "launch/kernel.h"
#include "python/argument.h"

#include <Python.h>

#include <cstddef>

namespace cudamod::python {

/// Python's `CURRENT`, which stands for a stream in a launch: the one on which the framework of the
/// first tensor among the arguments works now.
extern PyObject* current_mark;

/// Where a launch on CURRENT goes.
struct CurrentStream {
    const handles::StreamBox* box = nullptr;
    handles::StreamHandle keep; // of a box that may end
    DescribedTensor described{nullptr, 0};
};

/// Asks the framework of the first tensor on a device: by DLPack's C exchange API, else torch, CuPy
/// or Numba themselves. False with a Python error set; a TypeError when no argument is a tensor of
/// such a framework. Own Buffers belong to none.
bool find_current_stream(const launch::Kernel& kernel, PyObject* const* arguments,
                         std::size_t count, CurrentStream& found);

} // namespace cudamod::python
