#pragma once

#include "launch/kernel.h"
#include "launch/layout.h"
#include "python/buffer.h"
#include "python/integer.h"

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstring>

namespace cudamod::python {

/// Counts what was closed: a launch whose conversions may run Python sees whether it has to look.
inline std::atomic<unsigned> closings{0};

/// A tensor that its framework has described already, to tell its stream.
struct DescribedTensor {
    PyObject* object;
    std::uint64_t address;
};

/// Where a value is going, for its errors and for the check of its device.
struct ArgumentSite {
    const launch::Kernel& kernel;
    std::size_t index;
    int device;
    const DescribedTensor* described = nullptr;
    mutable bool ran_python = false; // a conversion may have, and closed something meanwhile
    mutable unsigned closed_before = 0;

    /// To be called before anything that may run Python.
    void may_run_python() const {
        if (ran_python) return;
        ran_python = true;
        closed_before = closings.load(std::memory_order_relaxed);
    }
    bool something_closed() const {
        return ran_python && closings.load(std::memory_order_relaxed) != closed_before;
    }
};

/// Writes any value that the argument contract allows into its cell; false with a Python error set.
/// May run Python code (`__index__`, `__cuda_array_interface__`), which may launch in its turn:
/// cells never belong to anything but the call in progress.
bool convert_any(PyObject* value, const launch::Parameter& parameter, std::byte* cell,
                 const ArgumentSite& site);

/// The kinds that launches mostly pass: exact int and float, and our own Buffer. False for whatever
/// `convert_any` has to see; it runs no Python.
inline bool convert_common(PyObject* value, const launch::Parameter& parameter, std::byte* cell,
                           int device) {
    PyTypeObject* type = Py_TYPE(value);
    const launch::Type& wanted = parameter.type;
    if (type == Buffer::python_type) {
        const Buffer& buffer = Buffer::of(value);
        if (!parameter.takes_pointer || buffer.address == 0 || !buffer.reachable_from(device))
            return false;
        std::memcpy(cell, &buffer.address, sizeof buffer.address);
        return true;
    }
    if (type == &PyLong_Type) {
        std::uint64_t magnitude;
        bool negative;
        if (!read_long(value, magnitude, negative) ||
            magnitude > (negative ? wanted.low : wanted.high))
            return false;
        std::uint64_t bits = negative ? std::uint64_t{0} - magnitude : magnitude;
        std::memcpy(cell, &bits, sizeof bits);
        return true;
    }
    if (type == &PyFloat_Type && wanted.type_class == launch::TypeClass::Float) {
        double number = PyFloat_AS_DOUBLE(value);
        if (wanted.size == 4) {
            float rounded = static_cast<float>(number);
            if (rounded - rounded != 0.0f) return false; // not finite
            std::memcpy(cell, &rounded, sizeof rounded);
            return true;
        }
        if (wanted.size == 8) {
            std::memcpy(cell, &number, sizeof number);
            return true;
        }
    }
    return false;
}

/// Any value.
inline bool convert(PyObject* value, const launch::Parameter& parameter, std::byte* cell,
                    const ArgumentSite& site) {
    if (convert_common(value, parameter, cell, site.device)) return true;
    site.may_run_python();
    return convert_any(value, parameter, cell, site);
}

} // namespace cudamod::python
