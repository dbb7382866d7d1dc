#include "python/kernel.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "launch/signature.h"
#include "python/context.h"
#include "python/device.h"
#include "python/error.h"
#include "python/gil_released.h"
#include "python/kernel_attributes.h"
#include "python/kernel_occupancy.h"
#include "python/launch.h"
#include "python/launcher.h"
#include "python/library.h"
#include "python/named_tuple.h"
#include "python/public_call.h"
#include "python/signature.h"
#include "python/stream.h"
#include "python/text.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace cudamod::python {

namespace {

constexpr const char* kOrigin = "Please use ObjectCode APIs.";

/// kernel[grid, block, stream, shmem_size]
PyObject* subscript(PyObject* self, PyObject* key) {
    try {
        Kernel& kernel = *payload<Kernel>(self);
        return kernel.launchers.find(kernel.shared, key).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kOrigin>)},
                       {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
                       {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                       {0, nullptr}};

std::uintptr_t raw(const Kernel& self) {
    return reinterpret_cast<std::uintptr_t>(self.shared->raw());
}

/// The parameters as the driver tells them in the current context, asked once.
const launch::Layout& layout_of(const Kernel& self) {
    begin_public_call();
    if (const launch::Layout* known = self.shared->known_layout()) return *known;
    CUcontext current = handles::current_context();
    if (!current)
        driver::raise(CUDA_ERROR_INVALID_CONTEXT, "cuKernelGetParamInfo",
                      "kernel '" + self.shared->name() + "'; call Device.set_current() first");
    return self.shared->layout(current);
}

NamedTuple parameter_info;

nb::list arguments_info(const Kernel& self) {
    nb::list info;
    for (const launch::Parameter& parameter : layout_of(self).parameters)
        info.append(parameter_info(parameter.offset, parameter.type.size));
    return info;
}

nb::object attributes(Kernel& self) {
    if (!self.attributes.is_valid())
        self.attributes =
            make<KernelAttributes>(self.shared, std::make_shared<AttributeCache>(), -1);
    return self.attributes;
}

nb::object occupancy(Kernel& self) {
    if (!self.occupancy.is_valid()) self.occupancy = make<KernelOccupancy>(self.shared);
    return self.occupancy;
}

nb::object bind(const Kernel& self, nb::object config, nb::object stream, nb::object signature,
                nb::object gil, nb::object metadata) {
    begin_public_call();
    if (!nb::isinstance<LaunchConfig>(config)) {
        PyErr_Format(PyExc_TypeError, "Kernel.bind: config must be a LaunchConfig, not %s",
                     Py_TYPE(config.ptr())->tp_name);
        throw nb::python_error();
    }
    nb::object on = stream_or_current(stream);
    auto layout = layout_for(self.shared, signature, context_for_layout(on));
    return make_launcher(self.shared, std::move(layout), std::move(config), std::move(on),
                         gil_manner(gil), std::move(metadata));
}

void load(const Kernel& self, nb::object where) {
    begin_public_call();
    CUcontext context = nullptr;
    if (const Context* given = instance<Context>(where.ptr()))
        context = given->raw;
    else if (const Stream* stream = instance<Stream>(where.ptr()))
        context = handles::box_of<handles::StreamBox>(open_handle(*stream)).context;
    else
        context = where.is_none() && handles::current_context()
                      ? handles::current_context()
                      : handles::primary_context(ordinal_of(where));
    std::shared_ptr<const launch::Kernel> kernel = self.shared;
    GilReleased unlocked;
    kernel->load(context);
}

std::uintptr_t handle_argument(nb::handle handle) {
    if (!PyLong_Check(handle.ptr()) || PyBool_Check(handle.ptr())) {
        PyErr_Format(PyExc_TypeError, "handle must be an integer, got %s",
                     Py_TYPE(handle.ptr())->tp_name);
        throw nb::python_error();
    }
    unsigned long long value = PyLong_AsUnsignedLongLong(handle.ptr());
    if (PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_OverflowError, "handle %s is not a CUkernel (1 .. 2**64 - 1)",
                     text_of(handle.ptr()).c_str());
        throw nb::python_error();
    }
    if (value == 0) throw nb::value_error("handle 0 is no CUkernel");
    return value;
}

nb::object from_handle(nb::handle type, nb::handle handle, nb::object object_code) {
    begin_public_call();
    std::uintptr_t value = handle_argument(handle);
    handles::LibraryHandle library;
    if (!object_code.is_none()) library = library_of(object_code);
    auto kernel = handles::kernel_from_raw(reinterpret_cast<CUkernel>(value), library);
    const auto& box = handles::box_of<handles::KernelBox>(kernel);
    if (library && box.library && box.library != library &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The library from the provided ObjectCode does not match the library "
                     "associated with this kernel.",
                     1) < 0)
        throw nb::python_error();
    nb::object origin = nb::none();
    if (library && box.library == library) origin = nb::getattr(object_code, "_image", nb::none());
    return make_as<Kernel>(type, std::make_shared<const launch::Kernel>(
                                     std::move(kernel), launch::infer_types(box.name, nullptr),
                                     as_origin(std::move(origin))));
}

/// A kernel travels with the image that it was found in.
nb::object reduce(const Kernel& self) {
    nb::object origin = object_of(self.shared->origin());
    if (origin.is_none()) {
        PyErr_Format(PyExc_TypeError,
                     "cannot pickle Kernel '%s': it came from a raw handle alone (from_handle also "
                     "takes its ObjectCode)",
                     self.shared->name().c_str());
        throw nb::python_error();
    }
    return origin.attr("_reduce_kernel")(self.shared->name());
}

std::string repr(const Kernel& self) {
    char text[48];
    std::snprintf(text, sizeof text, "<Kernel handle=0x%llx name='",
                  static_cast<unsigned long long>(raw(self)));
    return text + self.shared->name() + "'>";
}

} // namespace

std::shared_ptr<const launch::Layout>
layout_for(const std::shared_ptr<const launch::Kernel>& kernel, nb::handle signature,
           CUcontext context) {
    if (signature.is_none()) // the kernel's own lives as long as the kernel
        return {kernel, &kernel->layout(context)};
    return std::make_shared<const launch::Layout>(
        kernel->layout_by(signature_types(signature), context));
}

void bind_kernel(nb::module_& module) {
    parameter_info.define(module, "ParamInfo", "Where a parameter lies in the parameter block.",
                          {{"offset", "in bytes"}, {"size", "in bytes"}});
    auto type =
        nb::class_<Kernel>(
            module, "Kernel", nb::type_slots(slots), nb::is_weak_referenceable(),
            "A kernel of an ObjectCode, which it keeps loaded. Shareable between threads.")
            .def_prop_ro("handle", raw, "The CUkernel as an int.")
            .def_prop_ro(
                "name", [](const Kernel& self) { return self.shared->name(); },
                "The (mangled) name.")
            .def_prop_ro("attributes", attributes,
                         nb::sig("def attributes(self) -> KernelAttributes"))
            .def_prop_ro("occupancy", occupancy, nb::sig("def occupancy(self) -> KernelOccupancy"))
            .def_prop_ro(
                "num_arguments",
                [](const Kernel& self) { return layout_of(self).parameters.size(); },
                "The number of parameters. Raises CUDAError when no context is current.")
            .def_prop_ro("arguments_info", arguments_info,
                         nb::sig("def arguments_info(self) -> list[ParamInfo]"),
                         "Offset and size of each parameter within the parameter block, in bytes.")
            .def_prop_ro(
                "signature", [](const Kernel& self) { return signature_text(layout_of(self)); },
                "The types of the parameters, as `bind` takes them; None when only their sizes are "
                "known.")
            .def("bind", bind, nb::arg("config").none(), nb::arg("stream").none(), nb::kw_only(),
                 nb::arg("signature") = nb::none(), nb::arg("gil") = nb::none(),
                 nb::arg("metadata") = nb::none(),
                 nb::sig("def bind(self, config: LaunchConfig, stream: object, *, signature: str | "
                         "Sequence[Any] | None = None, gil: Literal['release', 'auto', 'hold'] | "
                         "None = None, metadata: object = None) -> Launcher"),
                 "A callable that launches the kernel with its arguments.\n\n"
                 "`signature` gives the types of the parameters where image and name don't tell "
                 "them: a text such as\n"
                 "'f32, ptr, u64', or a sequence of such names, NumPy dtypes and ctypes types. "
                 "`gil='hold'` keeps the\n"
                 "interpreter lock during the driver call, 'auto' while that call can't wait for "
                 "room "
                 "in "
                 "the stream's queue.\n"
                 "`stream` may be CURRENT. `metadata` is handed to launch hooks.\n\n"
                 "Raises ValueError for a signature that contradicts the kernel, for more dynamic "
                 "shared memory than\n"
                 "the device allows, and for a cooperative grid that can't run at once.")
            .def("load", load, nb::arg("context") = nb::none(),
                 nb::sig("def load(self, context: Context | Stream | Device | int | None = None) "
                         "-> None"),
                 "Makes the kernel resident in a context (the current one without any), so that no "
                 "launch has to load\n"
                 "it: a first launch inside a capture, or behind a kernel that does not end.")
            .def(
                "__eq__",
                [](const Kernel& self, nb::handle other) {
                    const Kernel* o = instance<Kernel>(other.ptr());
                    return o && raw(*o) == raw(self);
                },
                nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
            .def("__hash__",
                 [](const Kernel& self) { return std::hash<std::uintptr_t>()(raw(self)); })
            .def("__reduce__", reduce, nb::sig("def __reduce__(self) -> tuple[Any, ...]"),
                 "Travels as its image and its name; loads where it arrives.")
            .def(
                "__copy__", [](const Kernel& self) { return nb::find(self); },
                nb::sig("def __copy__(self) -> Self"), "The kernel itself, which never changes.")
            .def(
                "__deepcopy__", [](const Kernel& self, nb::handle) { return nb::find(self); },
                nb::arg("memo").none(), nb::sig("def __deepcopy__(self, memo: object, /) -> Self"))
            .def("__repr__", repr);
    def_class_method(
        type, "from_handle", from_handle, nb::arg("cls"), nb::arg("handle").none(),
        nb::arg("mod") = nb::none(),
        nb::sig("def from_handle(cls, handle: int, mod: object = None) -> Self"),
        "Wraps a CUkernel that somebody else loaded (`mod`, an ObjectCode, is kept loaded), or "
        "finds our\n"
        "own kernel and its library again. The value itself can't be checked.\n\n"
        "Raises TypeError for anything but an int, ValueError for 0, OverflowError beyond 64 "
        "bits.");
    prove_payload<Kernel>(nullptr);
}

} // namespace cudamod::python
