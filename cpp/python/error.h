/// C++ exceptions become Python exceptions here, and only here.
///
/// The classes are Python's (cudamod/errors.py), which hands their factories to the extension, so
/// that C++ imports no Python module. nanobind functions may let DriverError, DriverNotFound and
/// SelectionError out; hand-written C-API code catches them and calls set_python_error().
#pragma once

#include <Python.h>

#include "driver/library.h"
#include "driver/status.h"

namespace cudamod::python {

/// Sets the Python error. The GIL must be held.
void set_python_error(const driver::DriverError& error) noexcept;
void set_python_error(const driver::DriverNotFound& error) noexcept;
void set_python_error(const driver::SelectionError& error) noexcept;

/// The same for the exception being handled, whatever it is: `catch (...) { set_python_error(); }`.
void set_python_error() noexcept;

/// The class of warnings about what failed where nobody could be told (borrowed).
PyObject* warning_class() noexcept;

} // namespace cudamod::python
