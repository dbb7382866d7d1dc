#include "python/prepared.h"

#include "python/bindings.h"

#include "python/error.h"
#include "python/gil.h"
#include "python/kernel.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <structmember.h>

namespace cudamod::python {

PreparedArguments::PreparedArguments(const launch::Layout& layout)
    : owners(layout.parameters.size()), pointers(layout.parameters.size()),
      cells(new std::byte[layout.buffer_bytes]()) {
    for (std::size_t i = 0; i < pointers.size(); ++i)
        pointers[i] = cells.get() + layout.parameters[i].slot;
}

PreparedArguments::PreparedArguments(const PreparedArguments& other, const launch::Layout& layout)
    : PreparedArguments(layout) {
    owners = other.owners;
    std::memcpy(cells.get(), other.cells.get(), layout.buffer_bytes);
}

void release(PreparedArguments* arguments) noexcept {
    if (--arguments->users == 0) delete arguments;
}

PreparedLaunch::PreparedLaunch(std::shared_ptr<const launch::Kernel> kernel_,
                               std::shared_ptr<const launch::Layout> layout_, nb::object config,
                               nb::object stream, nb::object metadata_, GilManner gil,
                               handles::StreamHandle handle_, PreparedArguments* arguments_)
    : kernel(std::move(kernel_)), layout(std::move(layout_)), config_object(std::move(config)),
      stream_object(std::move(stream)), metadata(std::move(metadata_)), handle(std::move(handle_)),
      arguments(arguments_),
      source{kernel, config_object.ptr(), stream_object.ptr(), metadata.ptr()},
      parts{*kernel,
            *layout,
            *instance<LaunchConfig>(config_object.ptr()),
            handles::box_of<handles::StreamBox>(handle),
            instance<Stream>(stream_object.ptr())->handle,
            source,
            queue_for(gil, handles::box_of<handles::StreamBox>(handle)),
            gil} {
    launch::Config::Native filled;
    parts.config.copy_to(filled, parts.stream.raw);
    native = filled.config;
}

namespace {

struct Prepared {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* weak_references;
    alignas(PreparedLaunch) std::byte launch[sizeof(PreparedLaunch)]; // it has no standard layout
};

PyTypeObject* prepared_type = nullptr;

PreparedLaunch& launch_of(PyObject* self) {
    return *std::launder(
        reinterpret_cast<PreparedLaunch*>(reinterpret_cast<Prepared*>(self)->launch));
}

PyObject* unusable(const PreparedLaunch& launch, const char* why) {
    PyErr_Format(PyExc_RuntimeError, "kernel '%s': %s", launch.kernel->name().c_str(), why);
    return nullptr;
}

constexpr const char* kCollected = "the Prepared has been garbage collected";

/// What the argument's memory depends on.
PreparedArguments::Owner owner_of(PyObject* value) {
    PreparedArguments::Owner owner{nb::borrow(value), {}, {}};
    if (const Buffer* buffer = instance<Buffer>(value)) {
        owner.memory = buffer->memory;
        owner.foreign = buffer->owner;
    }
    return owner;
}

/// The driver call with the configuration that is filled already. The driver may write into
/// attributes, so those are copied for each call.
struct CallPrepared {
    const CUlaunchConfig& native;

    CUresult operator()(const LaunchParts& parts, void** pointers) const {
        return CallDriver::in_manner(parts, [&] {
            return native.numAttrs
                       ? launch::call(parts.config, parts.stream, parts.function, pointers)
                       : launch::call(native, parts.stream, parts.function, pointers);
        });
    }
};

PyObject* call(PyObject* self, PyObject* const*, std::size_t nargsf, PyObject* names) {
    PreparedLaunch& launch = launch_of(self);
    if (PyVectorcall_NARGS(nargsf) || (names && PyTuple_GET_SIZE(names))) [[unlikely]] {
        PyErr_Format(PyExc_TypeError,
                     "a prepared launch of kernel '%s' takes no arguments; set_arg changes them",
                     launch.kernel->name().c_str());
        return nullptr;
    }
    if (!launch.parts.open) [[unlikely]]
        return unusable(launch, "Stream has been closed");
    if (handles::attention.load(std::memory_order_relaxed)) [[unlikely]]
        return launch_prepared(launch, launch.parts);
    ArgumentsInUse arguments(launch);
    if (!arguments.get()) [[unlikely]]
        return unusable(launch, kCollected);
    return launch_packed(launch.parts, arguments.pointers(), CallPrepared{launch.native});
}

bool position(PyObject* index, const PreparedLaunch& launch, std::size_t& result) {
    Py_ssize_t value = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (value == -1 && PyErr_Occurred()) return false;
    std::size_t count = launch.layout->parameters.size();
    if (value < 0 || static_cast<std::size_t>(value) >= count) {
        PyErr_Format(PyExc_IndexError, "kernel '%s' has %zu argument%s, there is no argument %zd",
                     launch.kernel->name().c_str(), count, count == 1 ? "" : "s", value);
        return false;
    }
    result = static_cast<std::size_t>(value);
    return true;
}

/// Commits a converted argument and gives the old owner back in `owner`. False when there is
/// nothing left to change.
bool change(PreparedLaunch& launch, std::size_t index, const std::byte* cell, std::size_t bytes,
            PreparedArguments::Owner& owner) {
    nb::ft_lock_guard lock(launch.mutex);
    if (!launch.arguments) return false;
    if (launch.arguments->users > 1) {
        auto* copy = new PreparedArguments(*launch.arguments, *launch.layout);
        release(launch.arguments);
        launch.arguments = copy;
    }
    std::memcpy(launch.arguments->pointers[index], cell, bytes);
    std::swap(launch.arguments->owners[index], owner);
    ++launch.version;
    return true;
}

PyObject* set_arg(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "set_arg() takes an index and a value, got %zd arguments",
                     count);
        return nullptr;
    }
    try {
        PreparedLaunch& launch = launch_of(self);
        std::size_t index;
        if (!position(given[0], launch, index)) return nullptr;
        // A conversion may run Python that calls this launch or changes it.
        const launch::Parameter& parameter = launch.layout->parameters[index];
        std::size_t bytes = std::max<std::size_t>(8, parameter.type.size);
        alignas(16) std::byte small[64];
        std::unique_ptr<std::byte[]> large;
        if (bytes > sizeof small) large.reset(new std::byte[bytes]);
        std::byte* cell = large ? large.get() : small;
        ArgumentSite site{*launch.kernel, index, launch.box().device};
        if (!convert(given[1], parameter, cell, site)) return nullptr;
        if (site.something_closed() && !still_open(launch.parts, given + 1, 1)) return nullptr;
        PreparedArguments::Owner owner = owner_of(given[1]);
        if (!change(launch, index, cell, bytes, owner)) return unusable(launch, kCollected);
        Py_RETURN_NONE; // the old owner ends here, which may run Python
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    const PreparedLaunch& launch = launch_of(self);
    Py_VISIT(launch.config_object.ptr());
    Py_VISIT(launch.stream_object.ptr());
    Py_VISIT(launch.metadata.ptr());
    // A copy that a call in progress reads is the call's.
    if (!launch.arguments || launch.arguments->users > 1) return 0;
    for (const PreparedArguments::Owner& owner : launch.arguments->owners) {
        Py_VISIT(owner.value.ptr());
        Py_VISIT(owner.foreign.ptr());
    }
    return 0;
}

int clear(PyObject* self) {
    PreparedLaunch& launch = launch_of(self);
    if (PreparedArguments* arguments = std::exchange(launch.arguments, nullptr)) release(arguments);
    nb::object metadata = std::move(launch.metadata);
    return 0;
}

void deallocate(PyObject* self) {
    PyObject_GC_UnTrack(self);
    auto* prepared = reinterpret_cast<Prepared*>(self);
    if (prepared->weak_references) PyObject_ClearWeakRefs(self);
    clear(self);
    launch_of(self).~PreparedLaunch();
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyObject* refuse(PyTypeObject*, PyObject*, PyObject*) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Prepared objects cannot be instantiated directly. Use Launcher.prepare.");
    return nullptr;
}

PyObject* get_kernel(PyObject* self, void*) {
    try {
        return make<Kernel>(launch_of(self).kernel).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* get_arguments(PyObject* self, void*) {
    ArgumentsInUse in_use(launch_of(self));
    const PreparedArguments* arguments = in_use.get();
    std::size_t count = arguments ? arguments->owners.size() : 0;
    PyObject* all = PyTuple_New(static_cast<Py_ssize_t>(count));
    for (std::size_t i = 0; all && i < count; ++i) {
        nb::object value = arguments->owners[i].value;
        PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), value.release().ptr());
    }
    return all;
}

PyObject* get_config(PyObject* self, void*) {
    return nb::object(launch_of(self).config_object).release().ptr();
}
PyObject* get_stream(PyObject* self, void*) {
    return nb::object(launch_of(self).stream_object).release().ptr();
}
PyObject* get_gil(PyObject* self, void*) {
    return PyUnicode_FromString(name_of(launch_of(self).parts.gil));
}

PyObject* repr(PyObject* self) {
    const PreparedLaunch& launch = launch_of(self);
    return PyUnicode_FromFormat("<Prepared kernel='%s' config=%R stream=%R>",
                                launch.kernel->name().c_str(), launch.config_object.ptr(),
                                launch.stream_object.ptr());
}

PyObject* reduce(PyObject* self, PyObject*) {
    try {
        refuse_pickling(self);
    } catch (...) {
        set_python_error();
    }
    return nullptr;
}

PyMethodDef methods[] = {
    {"set_arg", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_arg)), METH_FASTCALL,
     "set_arg(index, value)\n\nChanges one argument for later calls."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"kernel", get_kernel, nullptr, "The kernel.", nullptr},
    {"config", get_config, nullptr, "The LaunchConfig.", nullptr},
    {"stream", get_stream, nullptr, "The Stream.", nullptr},
    {"gil", get_gil, nullptr, "As of the Launcher.", nullptr},
    {"arguments", get_arguments, nullptr, "The arguments as they were given.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Prepared, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Prepared, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
const char* const kDoc =
    "A launch with its arguments: calling it converts nothing. It keeps its arguments alive, the "
    "memory of a Buffer\n"
    "that is closed meanwhile included. Shareable between threads; a call launches with the "
    "arguments of the moment.\n\n"
    "Raises RuntimeError for a closed stream, CUDAError when the driver refuses.";
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>(kDoc)},
    {0, nullptr},
};
PyType_Spec spec = {"cudamod._core.Prepared", sizeof(Prepared), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC, slots};

} // namespace

nb::object make_prepared(std::shared_ptr<const launch::Kernel> kernel,
                         std::shared_ptr<const launch::Layout> layout, nb::object config,
                         nb::object stream, GilManner gil, nb::object metadata,
                         PyObject* const* arguments, std::size_t count) {
    begin_public_call();
    handles::StreamHandle handle = open_handle(*instance<Stream>(stream.ptr()));
    if (count != layout->parameters.size()) {
        wrong_count(*kernel, layout->parameters.size(), count);
        throw nb::python_error();
    }
    auto converted = std::make_unique<PreparedArguments>(*layout);
    ArgumentSite site{*kernel, 0, handles::box_of<handles::StreamBox>(handle).device};
    if (!pack(*layout, arguments, count, converted->cells.get(), converted->pointers.data(), site))
        throw nb::python_error();
    auto* prepared = PyObject_GC_New(Prepared, prepared_type);
    if (!prepared) throw nb::python_error();
    prepared->vectorcall = call;
    prepared->weak_references = nullptr;
    new (&prepared->launch)
        PreparedLaunch(std::move(kernel), std::move(layout), std::move(config), std::move(stream),
                       std::move(metadata), gil, std::move(handle), converted.release());
    PyObject_GC_Track(prepared);
    nb::object made = nb::steal(reinterpret_cast<PyObject*>(prepared));
    PreparedLaunch& launch = launch_of(made.ptr());
    if (!still_open(launch.parts, arguments, count)) throw nb::python_error();
    for (std::size_t i = 0; i < count; ++i)
        launch.arguments->owners[i] = owner_of(arguments[i]);
    return made;
}

PyObject* launch_prepared(const PreparedLaunch& launch, const LaunchParts& parts) {
    ArgumentsInUse arguments(launch);
    if (!arguments.get()) return unusable(launch, kCollected);
    if (!handles::attention.load(std::memory_order_relaxed))
        return launch_packed(parts, arguments.pointers());
    std::vector<PyObject*> values;
    for (const PreparedArguments::Owner& owner : arguments.get()->owners)
        values.push_back(owner.value.ptr());
    return launch_packed_attentively(parts, values.data(), values.size(), arguments.pointers());
}

PreparedLaunch* prepared_launch(PyObject* object) {
    return Py_TYPE(object) == prepared_type ? &launch_of(object) : nullptr;
}

void bind_prepared(nb::module_& module) {
    prepared_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!prepared_type) throw nb::python_error();
    module.attr("Prepared") = nb::handle(reinterpret_cast<PyObject*>(prepared_type));
}

} // namespace cudamod::python
