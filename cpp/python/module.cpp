#include <nanobind/nanobind.h>

#include "python/bindings.h"

NB_MODULE(_core, module) {
    module.doc() = "The native half of cudamod; import cudamod instead.";
    cudamod::python::bind_error(module);
    cudamod::python::bind_driver(module);
}
