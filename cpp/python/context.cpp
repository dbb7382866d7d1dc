#include "python/context.h"

#include "python/bindings.h"

#include "python/device.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace cudamod::python {

namespace {

constexpr const char* kContextOrigin = "Use Device.context.";
PyType_Slot context_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kContextOrigin>)},
                               {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                               {0, nullptr}};

std::uintptr_t handle(const Context& context) {
    return reinterpret_cast<std::uintptr_t>(context.raw);
}

} // namespace

void bind_context(nb::module_& module) {
    nb::class_<Context>(module, "Context", nb::type_slots(context_slots), "A context of a device.")
        .def_prop_ro("handle", handle, "The CUcontext as an int.")
        .def_prop_ro(
            "device", [](const Context& self) { return device_object(self.device); },
            nb::sig("def device(self) -> Device"), "The device that the context lives on.")
        .def(
            "__eq__",
            [](const Context& self, nb::handle other) {
                const Context* o = instance<Context>(other.ptr());
                return o && o->raw == self.raw;
            },
            nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"))
        .def("__hash__",
             [](const Context& self) { return std::hash<std::uintptr_t>()(handle(self)); })
        .def("__repr__", [](const Context& self) {
            char text[80];
            std::snprintf(text, sizeof text, "<Context handle=0x%llx device=%d>",
                          static_cast<unsigned long long>(handle(self)), self.device);
            return std::string(text);
        });
}

} // namespace cudamod::python
