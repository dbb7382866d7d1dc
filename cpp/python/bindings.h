/// One function per part of the extension module; module.cpp calls them in this order.
#pragma once

#include <nanobind/nanobind.h>

namespace cudamod::python {

void bind_error(nanobind::module_& module);
void bind_driver(nanobind::module_& module);

} // namespace cudamod::python
