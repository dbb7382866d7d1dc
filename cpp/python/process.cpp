#include "driver/environment.h"
#include "handles/deferred_frees.h"
#include "handles/destruction.h"
#include "handles/memory_pool.h"
#include "handles/retirement.h"
#include "python/bindings.h"
#include "python/gil_released.h"
#include "python/host_callback.h"
#include "python/public_call.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

namespace nb = nanobind;

namespace cudamod::python {

namespace {

/// What destructors had to report comes out now or never; from here on they leave the driver alone.
void at_exit() {
    if (!reports_delivered()) PyErr_WriteUnraisable(nullptr);
    stop_callbacks();
    handles::stop_destroying();
}

/// The interpreter lock for driver calls that may wait, made by destructors with or without it.
void* release_lock() {
    if (!Py_IsInitialized() || finalizing() || !PyGILState_Check()) return nullptr;
    return PyEval_SaveThread();
}

void acquire_lock(void* state) {
    take_gil(static_cast<PyThreadState*>(state));
}

handles::UnloadManner unload_manner() {
    std::optional<std::string> text = driver::read(driver::kUnloadVariable);
    if (!text || *text == "deferred") return handles::UnloadManner::Deferred;
    if (*text == "now") return handles::UnloadManner::Now;
    if (*text == "never") return handles::UnloadManner::Never;
    throw nb::import_error(
        ("CUDAMOD_UNLOAD must be deferred, now or never, not '" + *text + "'").c_str());
}

} // namespace

void bind_process(nb::module_& module) {
    handles::set_interpreter_lock({release_lock, acquire_lock});
    handles::set_unload_manner(unload_manner());
    // Runs before the interpreter takes modules and objects apart.
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(at_exit));
    module.def(
        "reclaim",
        [] {
            begin_public_call();
            handles::reclaim_pools(true);
            GilReleased unlocked;
            return handles::reclaim();
        },
        "Unload every retired library; answers how many. Destroys the memory pools that waited for "
        "their last frees, too.");
    module.def("free_deferred", handles::free_deferred,
               "Frees what could not be freed while its stream was captured.");
    module.def(
        "retired",
        [] {
            begin_public_call();
            handles::Retired retired = handles::retired();
            return nb::make_tuple(retired.libraries, retired.image_bytes);
        },
        nb::sig("def retired() -> tuple[int, int]"),
        "How many libraries, and bytes of images, are retired.");
    module.def(
        "retirement_limits",
        [] {
            handles::RetirementLimits limits = handles::retirement_limits();
            return nb::make_tuple(limits.libraries, limits.image_bytes);
        },
        nb::sig("def retirement_limits() -> tuple[int, int]"));
    module.def(
        "set_retirement_limits",
        [](std::size_t libraries, std::size_t image_bytes) {
            handles::set_retirement_limits({libraries, image_bytes});
        },
        nb::arg("libraries"), nb::arg("image_bytes"));
}

} // namespace cudamod::python
