#pragma once

#include "python/instance.h"

#include <initializer_list>
#include <string>

namespace cudamod::python {

/// Reads one option out of an options object, a dict, or None (`fallback`).
inline nb::object option(nb::handle options, const char* name, nb::object fallback) {
    if (options.is_none()) return fallback;
    if (nb::isinstance<nb::dict>(options)) {
        nb::object value = nb::steal(PyMapping_HasKeyString(options.ptr(), name)
                                         ? PyMapping_GetItemString(options.ptr(), name)
                                         : fallback.release().ptr());
        return value;
    }
    return nb::getattr(options, name);
}

/// Refuses keys of a dict that are no options, and anything that is neither a dict nor has the
/// options.
inline void check_options(nb::handle options, const char* type,
                          std::initializer_list<const char*> names) {
    if (options.is_none()) return;
    if (nb::isinstance<nb::dict>(options)) {
        for (auto [key, value] : nb::borrow<nb::dict>(options)) {
            bool known = false;
            for (const char* name : names)
                known |= PyUnicode_Check(key.ptr()) &&
                         PyUnicode_CompareWithASCIIString(key.ptr(), name) == 0;
            if (!known) {
                PyErr_Format(PyExc_TypeError, "%s has no option %R", type, key.ptr());
                throw nb::python_error();
            }
        }
        return;
    }
    for (const char* name : names)
        if (!nb::hasattr(options, name)) {
            PyErr_Format(PyExc_TypeError, "options must be %s, a dict or None, not %s", type,
                         Py_TYPE(options.ptr())->tp_name);
            throw nb::python_error();
        }
}

} // namespace cudamod::python
