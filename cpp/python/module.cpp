#include <nanobind/nanobind.h>

#include "python/bindings.h"

NB_MODULE(_core, module) {
    module.doc() = "The native half of cudamod; import cudamod instead.";
    using namespace cudamod::python;
    // The driver, the registries and the types are the process's: a second copy would break the
    // first.
    static bool loaded = false;
    if (loaded)
        throw nanobind::import_error(
            "cudamod can be imported once per process: not in a second interpreter, and not again "
            "after it was taken out of sys.modules");
    loaded = true;
    // Devices live as long as the process, and so may anything else when it ends.
    nanobind::set_leak_warnings(false);
    bind_error(module);
    bind_driver(module);
    bind_process(module);
    bind_tracking(module);
    bind_context(module);
    bind_device(module);
    bind_stream(module);
    bind_event(module);
    bind_python_half(module);
    bind_memory_pool_attributes(module);
    bind_memory_resource(module);
    bind_memory_pool(module);
    bind_plain_memory(module);
    bind_memory_owner(module);
    bind_buffer(module);
    bind_image(module);
    bind_tensor_map(module);
    bind_launch_config(module);
    bind_kernel_attributes(module);
    bind_kernel_occupancy(module);
    bind_kernel(module);
    bind_library(module);
    bind_link_input(module);
    bind_launcher(module);
    bind_prepared(module);
    bind_sequence(module);
    bind_graph(module);
    bind_launch(module);
    bind_current_stream(module);
    bind_launch_observer(module);
}
