#pragma once

#include <Python.h>

#include <cstdint>

namespace cudamod::python {

/// Who makes the values of a type, as far as they have a current stream.
enum class Framework : std::uint8_t { None, Exchange, Torch, CuPy, Numba };

/// The framework of a type, and its DLPack exchange table with Framework::Exchange. `is_torch`: its
/// values are for torch_reader as well.
struct FrameworkOfType {
    Framework framework;
    const void* exchange_api;
    bool is_torch = false;
};
FrameworkOfType framework_of(PyTypeObject* type);

/// The stream on which a framework works, as it names it itself.
struct FrameworkStream {
    std::uint64_t raw;
    int device;
};

/// Asks torch, CuPy or Numba for the current stream of a tensor's device. 1 found, 0 the value lies
/// on no device, -1 with a Python error set.
int ask_framework(Framework framework, PyObject* tensor, FrameworkStream& stream);

} // namespace cudamod::python
