/// One function per part of the extension module; module.cpp calls them in this order.
#pragma once

#include <nanobind/nanobind.h>

namespace cudamod::python {

void bind_error(nanobind::module_& module);
void bind_driver(nanobind::module_& module);
void bind_process(nanobind::module_& module);
void bind_tracking(nanobind::module_& module);
void bind_context(nanobind::module_& module);
void bind_device(nanobind::module_& module);
void bind_stream(nanobind::module_& module);
void bind_event(nanobind::module_& module);
void bind_python_half(nanobind::module_& module);
void bind_memory_resource(nanobind::module_& module);
void bind_memory_pool(nanobind::module_& module);
void bind_plain_memory(nanobind::module_& module);
void bind_memory_pool_attributes(nanobind::module_& module);
void bind_memory_owner(nanobind::module_& module);
void bind_buffer(nanobind::module_& module);
void bind_image(nanobind::module_& module);
void bind_tensor_map(nanobind::module_& module);
void bind_launch_config(nanobind::module_& module);
void bind_kernel_attributes(nanobind::module_& module);
void bind_kernel_occupancy(nanobind::module_& module);
void bind_kernel(nanobind::module_& module);
void bind_library(nanobind::module_& module);
void bind_link_input(nanobind::module_& module);
void bind_launcher(nanobind::module_& module);
void bind_prepared(nanobind::module_& module);
void bind_sequence(nanobind::module_& module);
void bind_graph(nanobind::module_& module);
void bind_launch(nanobind::module_& module);
void bind_current_stream(nanobind::module_& module);
void bind_launch_observer(nanobind::module_& module);

} // namespace cudamod::python
