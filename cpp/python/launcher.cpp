#include "python/launcher.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "launch/explanation.h"
#include "python/error.h"
#include "python/kernel.h"
#include "python/launch_path.h"
#include "python/signature.h"
#include "python/stream.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <cstddef>
#include <new>
#include <optional>
#include <stdexcept>
#include <structmember.h>

namespace cudamod::python {

namespace {

/// What the callable needs; the C++ part of the Python object.
struct Bound {
    std::shared_ptr<const launch::Kernel> kernel;
    std::shared_ptr<const launch::Layout> layout;
    nb::object config_object, stream_object;
    const LaunchConfig* config; // inside config_object
    const Stream* stream;       // inside stream_object
    handles::StreamHandle handle;
    const handles::StreamBox* box; // that of `handle`
    GilManner gil;
};

struct Launcher {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* weak_references;
    Bound bound;
};

PyTypeObject* launcher_type = nullptr;

Bound& bound_of(PyObject* self) {
    return reinterpret_cast<Launcher*>(self)->bound;
}

PyObject* stream_closed(const launch::Kernel& kernel) {
    PyErr_Format(PyExc_RuntimeError, "kernel '%s': Stream has been closed", kernel.name().c_str());
    return nullptr;
}

/// A call that overrides the stream or parts of the configuration by keyword.
PyObject* call_with_keywords(const Bound& bound, PyObject* const* arguments, std::size_t count,
                             PyObject* names) {
    try {
        launch::Shape shape = bound.config->shape();
        nb::object stream_object = bound.stream_object;
        bool reshaped = false;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
            nb::handle value(arguments[count + static_cast<std::size_t>(i)]);
            PyObject* name = PyTuple_GET_ITEM(names, i);
            if (PyUnicode_CompareWithASCIIString(name, "stream") == 0) {
                stream_object = stream_argument(value);
                continue;
            }
            reshaped = true;
            if (PyUnicode_CompareWithASCIIString(name, "grid") == 0)
                shape.grid = dimensions(value, "grid");
            else if (PyUnicode_CompareWithASCIIString(name, "block") == 0)
                shape.block = dimensions(value, "block");
            else if (PyUnicode_CompareWithASCIIString(name, "shmem_size") == 0)
                shape.shmem_size = shared_bytes(value);
            else {
                PyErr_Format(PyExc_TypeError,
                             "kernel '%s': unexpected keyword argument %R (known: stream, grid, "
                             "block, shmem_size)",
                             bound.kernel->name().c_str(), name);
                return nullptr;
            }
        }
        const Stream& stream = *instance<Stream>(stream_object.ptr());
        handles::StreamHandle handle = open_handle(stream);
        const handles::StreamBox& box = handles::box_of<handles::StreamBox>(handle);
        if (reshaped || box.context != bound.box->context) make_ready(*bound.kernel, shape, box);
        std::optional<LaunchConfig> config;
        if (reshaped) config.emplace(shape);
        return launch_with({*bound.kernel, *bound.layout, reshaped ? *config : *bound.config, box,
                            bound.gil, stream.handle},
                           arguments, count);
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t nargsf, PyObject* names) {
    const Bound& bound = bound_of(self);
    auto count = static_cast<std::size_t>(PyVectorcall_NARGS(nargsf));
    if (names && PyTuple_GET_SIZE(names)) return call_with_keywords(bound, arguments, count, names);
    if (!bound.stream->handle) [[unlikely]]
        return stream_closed(*bound.kernel);
    return launch_with(
        {*bound.kernel, *bound.layout, *bound.config, *bound.box, bound.gil, bound.stream->handle},
        arguments, count);
}

void deallocate(PyObject* self) {
    auto* launcher = reinterpret_cast<Launcher*>(self);
    if (launcher->weak_references) PyObject_ClearWeakRefs(self);
    launcher->bound.~Bound();
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject* refuse(PyTypeObject*, PyObject*, PyObject*) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Launcher objects cannot be instantiated directly. Use Kernel.bind.");
    return nullptr;
}

PyObject* on(PyObject* self, PyObject* stream) {
    try {
        const Bound& bound = bound_of(self);
        return make_launcher(bound.kernel, bound.layout, bound.config_object,
                             stream_argument(stream), bound.gil)
            .release()
            .ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

/// The floor of every comparison: the driver call alone, in a C loop, with the arguments packed
/// once.
PyObject* time_driver_call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (count < 2 || Py_TYPE(arguments[0]) != launcher_type || !PyLong_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError,
                        "time_driver_call() takes a Launcher, a number of launches and arguments");
        return nullptr;
    }
    long launches = PyLong_AsLong(arguments[1]);
    if (launches < 1) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "the number of launches must be >= 1 (got %ld)",
                         launches);
        return nullptr;
    }
    const Bound& bound = bound_of(arguments[0]);
    std::chrono::nanoseconds elapsed{0};
    auto repeat = [&](const LaunchParts& parts, void** pointers) {
        LaunchConfig::Native native;
        parts.config.copy_to(native, parts.stream.raw);
        auto* function = reinterpret_cast<CUfunction>(parts.kernel.raw());
        CUresult status = CUDA_SUCCESS;
        auto begin = std::chrono::steady_clock::now();
        for (long i = 0; i < launches && status == CUDA_SUCCESS; ++i)
            status = driver::table.cuLaunchKernelEx(&native.config, function, pointers, nullptr);
        elapsed = std::chrono::steady_clock::now() - begin;
        return status;
    };
    PyObject* done = launch_with(
        {*bound.kernel, *bound.layout, *bound.config, *bound.box, bound.gil, bound.stream->handle},
        arguments + 2, static_cast<std::size_t>(count - 2), repeat);
    if (!done) return nullptr;
    Py_DECREF(done);
    return PyFloat_FromDouble(static_cast<double>(elapsed.count()) / static_cast<double>(launches));
}

PyObject* get_kernel(PyObject* self, void*) {
    try {
        return make<Kernel>(bound_of(self).kernel).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* get_config(PyObject* self, void*) {
    return nb::object(bound_of(self).config_object).release().ptr();
}
PyObject* get_stream(PyObject* self, void*) {
    return nb::object(bound_of(self).stream_object).release().ptr();
}
PyObject* get_gil(PyObject* self, void*) {
    return PyUnicode_FromString(name_of(bound_of(self).gil));
}
PyObject* get_signature(PyObject* self, void*) {
    std::optional<std::string> text = signature_text(*bound_of(self).layout);
    if (!text) Py_RETURN_NONE;
    return PyUnicode_FromStringAndSize(text->data(), static_cast<Py_ssize_t>(text->size()));
}

PyObject* repr(PyObject* self) {
    const Bound& bound = bound_of(self);
    return PyUnicode_FromFormat("<Launcher kernel='%s' config=%R stream=%R gil='%s'>",
                                bound.kernel->name().c_str(), bound.config_object.ptr(),
                                bound.stream_object.ptr(), name_of(bound.gil));
}

PyMethodDef methods[] = {
    {"on", on, METH_O, "on(stream) -> Launcher\n\nThe same launch on another stream."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"kernel", get_kernel, nullptr, "The kernel.", nullptr},
    {"config", get_config, nullptr, "The LaunchConfig.", nullptr},
    {"stream", get_stream, nullptr, "The Stream.", nullptr},
    {"gil", get_gil, nullptr, "'release' or 'hold'.", nullptr},
    {"signature", get_signature, nullptr,
     "The types of the parameters, as bind takes them; None when only sizes are known.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Launcher, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
const char* const kDoc = "A kernel bound to a configuration and a stream. Calling it with the "
                         "kernel's arguments launches it, at the\n"
                         "cost of the driver call; the keywords stream, grid, block and shmem_size "
                         "override for one call. Shareable\n"
                         "between threads.\n\n"
                         "Raises TypeError for a wrong number or kind of arguments, OverflowError "
                         "for a number out of range, RuntimeError\n"
                         "for a closed stream or buffer, CUDAError when the driver refuses.";
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>(kDoc)},
    {0, nullptr},
};
PyType_Spec spec = {"cudamod._core.Launcher", sizeof(Launcher), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};

/// cuda.core's call: launch(stream, config, kernel, *arguments).
PyObject* launch_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (count < 3) {
        PyErr_Format(PyExc_TypeError,
                     "launch() takes a stream, a config, a kernel and its arguments, got %zd",
                     count);
        return nullptr;
    }
    const LaunchConfig* config = instance_or_exact<LaunchConfig>(arguments[1]);
    const Kernel* kernel = instance_or_exact<Kernel>(arguments[2]);
    if (!config || !kernel) {
        PyErr_Format(PyExc_TypeError, "launch(): %s must be a %s, not %s",
                     config ? "kernel" : "config", config ? "Kernel" : "LaunchConfig",
                     Py_TYPE(arguments[config ? 2 : 1])->tp_name);
        return nullptr;
    }
    try {
        nb::object converted;
        const Stream* stream = exactly<Stream>(arguments[0], Stream::python_type);
        if (!stream) {
            converted = stream_argument(arguments[0]);
            stream = instance<Stream>(converted.ptr());
        }
        // Another thread may close the stream while this one has let the interpreter lock go.
        handles::StreamHandle handle = open_handle(*stream);
        const handles::StreamBox& box = handles::box_of<handles::StreamBox>(handle);
        const launch::Kernel& shared = *kernel->shared;
        if (config->needs_preparation()) make_ready(shared, config->shape(), box);
        return launch_with({shared, shared.layout(box.context), *config, box, default_gil_manner(),
                            stream->handle},
                           arguments + 3, static_cast<std::size_t>(count - 3));
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyMethodDef launch_definition = {
    "launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch_function)),
    METH_FASTCALL,
    "launch(stream, config, kernel, *arguments)\n--\n\n"
    "Launches a kernel. `stream` is a Stream or an object with __cuda_stream__. Nothing is "
    "retained: the memory\n"
    "must live until the stream has run.\n\n"
    "Raises TypeError for a wrong number or kind of arguments, OverflowError for a number out of "
    "range,\n"
    "RuntimeError for a closed object, CUDAError when the driver refuses."};

PyMethodDef time_driver_call_definition = {
    "time_driver_call",
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(time_driver_call)), METH_FASTCALL,
    "time_driver_call(launcher, launches, *arguments)\n--\n\n"
    "Nanoseconds of one driver call that launches what the launcher would, the mean of a C loop: "
    "the floor that\n"
    "launches from Python are compared with."};

} // namespace

nb::object make_launcher(std::shared_ptr<const launch::Kernel> kernel,
                         std::shared_ptr<const launch::Layout> layout, nb::object config,
                         nb::object stream, GilManner gil) {
    const LaunchConfig* native = instance<LaunchConfig>(config.ptr());
    const Stream* on_stream = instance<Stream>(stream.ptr());
    handles::StreamHandle handle = open_handle(*on_stream);
    const handles::StreamBox* box = &handles::box_of<handles::StreamBox>(handle);
    make_ready(*kernel, native->shape(), *box);
    auto* launcher = PyObject_New(Launcher, launcher_type);
    if (!launcher) throw nb::python_error();
    launcher->vectorcall = call;
    launcher->weak_references = nullptr;
    new (&launcher->bound) Bound{std::move(kernel),
                                 std::move(layout),
                                 std::move(config),
                                 std::move(stream),
                                 native,
                                 on_stream,
                                 std::move(handle),
                                 box,
                                 gil};
    return nb::steal(reinterpret_cast<PyObject*>(launcher));
}

void make_ready(const launch::Kernel& kernel, const launch::Shape& shape,
                const handles::StreamBox& stream) {
    if (shape.attributes) {
        launch::require_driver_for(*shape.attributes);
        launch::require_context_of(*shape.attributes, stream.context);
    }
    if (shape.shmem_size) kernel.allow_dynamic_shared(stream.device, shape.shmem_size);
    // The driver itself counts how many clusters run at once.
    if (!shape.cooperative || shape.cluster) return;
    // A block that is too large is for the launch to refuse: it says which limit is exceeded.
    std::uint64_t threads = shape.block.product();
    if (threads > static_cast<unsigned>(
                      kernel.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, stream.device)))
        return;
    std::uint64_t most = launch::most_blocks_at_once(kernel, shape, stream);
    std::uint64_t asked = shape.blocks().product();
    if (asked > most)
        throw std::invalid_argument(
            "kernel '" + kernel.name() + "': the specified grid size (" +
            std::to_string(shape.grid.x) + " * " + std::to_string(shape.grid.y) + " * " +
            std::to_string(shape.grid.z) + ") exceeds the limit (" + std::to_string(most) +
            ") of blocks that can run at once, as a cooperative launch must");
}

void bind_launcher(nb::module_& module) {
    launcher_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!launcher_type) throw nb::python_error();
    module.attr("Launcher") = nb::handle(reinterpret_cast<PyObject*>(launcher_type));
    for (PyMethodDef* definition : {&launch_definition, &time_driver_call_definition}) {
        PyObject* function = PyCFunction_NewEx(definition, nullptr, module.attr("__name__").ptr());
        if (!function) throw nb::python_error();
        module.attr(definition->ml_name) = nb::steal(function);
    }
}

} // namespace cudamod::python
