#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "driver/environment.h"
#include "driver/functions.h"
#include "driver/library.h"
#include "driver/search.h"
#include "driver/status.h"
#include "python/bindings.h"
#include "python/gil_released.h"

namespace nb = nanobind;

/// The initialiser of CFFI's generated module, a part of this extension.
extern "C" PyObject* PyInit__cffi();

namespace cudamod::python {
namespace {

/// `(ffi, lib)`; imports cffi's backend on the first call.
nb::tuple load_cffi() {
    static PyObject* module = nullptr; // guarded by the GIL, or by the caller's import lock
    if (module == nullptr) {
        module = PyInit__cffi();
        if (module == nullptr) throw nb::python_error();
    }
    const nb::handle cffi(module);
    return nb::make_tuple(cffi.attr("ffi"), cffi.attr("lib"));
}

std::size_t slot_of(const char* name) {
    if (const auto slot = driver::find_function(name)) return *slot;
    throw nb::attribute_error((std::string("no driver function is called '") + name + "'").c_str());
}

nb::dict describe(const driver::Opened& driver) {
    nb::list rejected;
    for (const driver::Attempt& attempt : driver.rejected)
        rejected.append(nb::make_tuple(attempt.where, attempt.reason));
    nb::dict description;
    description["choice"] = driver.choice;
    description["path"] = driver.path;
    description["version"] = driver.version;
    description["rejected"] = nb::tuple(rejected);
    return description;
}

const driver::Opened& open_without_gil() {
    const GilReleased released;
    return driver::open();
}

} // namespace

void bind_driver(nb::module_& module) {
    module.def("load_cffi", load_cffi, nb::sig("def load_cffi() -> tuple[typing.Any, typing.Any]"),
               "CFFI's ffi and lib over the same driver table.");
    module.def("driver_select", driver::select, nb::arg("choice"));
    module.def("driver_selection", driver::selection);
    module.def("driver_places", driver::places, nb::arg("choice"),
               "What to try for a choice, in order: names for the loader and paths.");
    module.def("driver_opened", driver::opened);
    module.def(
        "driver_open", [] { return describe(open_without_gil()); },
        nb::sig("def driver_open() -> dict[str, typing.Any]"),
        "Open the driver, unless it is open, and describe it.");
    module.def("driver_version", [] { return open_without_gil().version; });
    module.def(
        "driver_has",
        [](const char* name) {
            const auto slot = slot_of(name);
            open_without_gil();
            return driver::has(slot);
        },
        nb::arg("name"));
    module.def(
        "driver_require",
        [](const char* name) {
            const auto slot = slot_of(name);
            const driver::Opened& driver = open_without_gil();
            if (!driver::has(slot)) {
                const driver::Function& function = driver::functions()[slot];
                driver::raise_missing({function.name, function.needed(), driver.version});
            }
        },
        nb::arg("name"), "Raise unless the driver has the function.");
    module.def(
        "driver_functions",
        [] {
            nb::list names;
            for (const driver::Function& function : driver::functions())
                names.append(function.name);
            return nb::tuple(names);
        },
        nb::sig("def driver_functions() -> tuple[str, ...]"),
        "The name of every driver function of the list.");
    module.def(
        "driver_function",
        [](const char* name) {
            const driver::Function& function = driver::functions()[slot_of(name)];
            return nb::make_tuple(function.exported, function.needed(), function.parameters,
                                  function.outputs);
        },
        nb::arg("name"), nb::sig("def driver_function(name: str) -> tuple[str, int, str, str]"),
        "Exported name, oldest CUDA version, parameter names and output positions.");
    module.def(
        "environment",
        [] {
            nb::list rows;
            for (const driver::Variable& variable : driver::kVariables)
                rows.append(nb::make_tuple(variable.name, variable.values, variable.meaning));
            return nb::tuple(rows);
        },
        nb::sig("def environment() -> tuple[tuple[str, str, str], ...]"),
        "Every environment variable: name, values, meaning.");
    module.def(
        "cache_directory",
        []() -> nb::object {
            const auto path = driver::read(driver::kCacheDirVariable);
            if (!path) return nb::none();
            return nb::steal(PyUnicode_DecodeFSDefault(path->c_str()));
        },
        nb::sig("def cache_directory() -> str | None"),
        "The folder that CUDAMOD_CACHE_DIR names, or None.");
}

} // namespace cudamod::python
