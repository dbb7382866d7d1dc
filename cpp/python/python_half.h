#pragma once

#include <nanobind/nanobind.h>

namespace cudamod::python {

/// What a native class keeps in Python because it is rarely needed: `name` of a module of the
/// package. The package hands over how its modules are imported, so that C++ imports none.
nanobind::object python_half(const char* module, const char* name);

} // namespace cudamod::python
