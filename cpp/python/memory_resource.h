#pragma once

#include "handles/stream.h"
#include "python/instance.h"

#include <cuda.h>

#include <string>

namespace cudamod::python {

/// Python's `MemoryResource`: the base of everything that gives Buffers, classes of Python too.
struct MemoryResource {};

/// The class of an object without its modules.
const char* class_name(nb::handle object);

/// The class that a maker of the package asks for. Throws TypeError unless it is `Native` or one
/// derived from it.
template <class Native>
PyTypeObject* class_of(nb::handle type) {
    auto* base = reinterpret_cast<PyTypeObject*>(nb::type<Native>().ptr());
    if (!PyType_Check(type.ptr()) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), base)) {
        PyErr_Format(PyExc_TypeError, "%R is no class of memory resources", type.ptr());
        throw nb::python_error();
    }
    return reinterpret_cast<PyTypeObject*>(type.ptr());
}

/// The resource of a device's pool, where nobody set another: the one that `device_pool` answers.
nb::object standard_resource(int device);

/// The one that was set, or none.
nb::object chosen_resource(int device);

/// Makes a MemoryResource the device's. Throws TypeError for anything else, ValueError for one of
/// another device's memory, RuntimeError for a closed one.
void choose_resource(int device, nb::handle resource);

/// Throws RuntimeError when the stream captures: an allocation would become a part of the graph.
void refuse_capture(const handles::StreamHandle& stream, const char* what);

/// Throws ValueError for memory that a Buffer owns, which would be freed twice.
void refuse_owned(CUdeviceptr raw, const std::string& what);

} // namespace cudamod::python
