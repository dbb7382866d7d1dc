#include "python/launch.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "handles/context.h"
#include "python/current_stream.h"
#include "python/error.h"
#include "python/gil.h"
#include "python/kernel.h"
#include "python/launch_config.h"
#include "python/launcher.h"
#include "python/stream.h"

#include <chrono>

namespace cudamod::python {

namespace {

/// `layout`: the kernel's own if null.
[[gnu::always_inline]] inline PyObject*
launch_on_stream(const Stream& stream, const LaunchSource& source, const launch::Layout* layout,
                 const launch::Config& config, GilManner gil, bool check,
                 PyObject* const* arguments, std::size_t count) {
    // Another thread may close the stream while this one has let the interpreter lock go.
    handles::StreamHandle handle = open_handle(stream);
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(handle);
    const launch::Kernel& kernel = *source.kernel;
    if (check && config.needs_preparation()) make_ready(kernel, config.shape(), box);
    return launch_with({kernel, layout ? *layout : kernel.layout(box.context), config, box,
                        stream.handle, source, queue_for(gil, box), gil},
                       arguments, count);
}

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
        const LaunchSource source{kernel->shared, arguments[1], arguments[0], nullptr};
        PyObject* const* values = arguments + 3;
        auto value_count = static_cast<std::size_t>(count - 3);
        if (const Stream* stream = exactly<Stream>(arguments[0], Stream::python_type)) [[likely]]
            return launch_on_stream(*stream, source, nullptr, *config, default_gil_manner(), true,
                                    values, value_count);
        const launch::Layout& layout = kernel->shared->layout(context_for_layout(arguments[0]));
        return launch_on(arguments[0], source, layout, *config, default_gil_manner(), true, values,
                         value_count);
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

/// The floor of every comparison: the driver call alone, in a C loop, with the arguments packed
/// once.
PyObject* time_driver_call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    const LaunchParts* bound = count < 2 ? nullptr : parts_of_launcher(arguments[0]);
    if (!bound || !PyLong_Check(arguments[1])) {
        if (!PyErr_Occurred())
            PyErr_SetString(
                PyExc_TypeError,
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
    std::chrono::nanoseconds elapsed{0};
    auto repeat = [&](const LaunchParts& parts, void** pointers) {
        LaunchConfig::Native native;
        parts.config.copy_to(native, parts.stream.raw);
        auto* function = reinterpret_cast<CUfunction>(parts.function);
        CUresult status = CUDA_SUCCESS;
        auto begin = std::chrono::steady_clock::now();
        for (long i = 0; i < launches && status == CUDA_SUCCESS; ++i)
            status = driver::table.cuLaunchKernelEx(&native.config, function, pointers, nullptr);
        elapsed = std::chrono::steady_clock::now() - begin;
        return status;
    };
    if (!reports_delivered()) return nullptr;
    PyObject* done =
        launch_unobserved(*bound, arguments + 2, static_cast<std::size_t>(count - 2), repeat);
    if (!done) return nullptr;
    Py_DECREF(done);
    return PyFloat_FromDouble(static_cast<double>(elapsed.count()) / static_cast<double>(launches));
}

PyMethodDef launch_definition = {
    "launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch_function)),
    METH_FASTCALL,
    "launch(stream, config, kernel, *arguments)\n--\n\n"
    "Launches a kernel. `stream` is a Stream, an object with __cuda_stream__, or CURRENT. Nothing "
    "is retained: the\n"
    "memory must live until the stream has run.\n\n"
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

const handles::StreamHandle& always_open() {
    static const CUstream none = nullptr;
    static const auto* handle = new handles::StreamHandle(std::shared_ptr<const CUstream>(), &none);
    return *handle;
}

nb::object stream_or_current(nb::handle stream) {
    return stream.ptr() == current_mark ? nb::borrow(stream) : stream_argument(stream);
}

CUcontext context_for_layout(nb::handle stream) {
    if (const Stream* own = instance_or_exact<Stream>(stream.ptr()))
        return handles::box_of<handles::StreamBox>(open_handle(*own)).context;
    // What a kernel's parameters are is the same in every context.
    CUcontext current = handles::current_context();
    for (int device = 0, count = current ? 0 : handles::device_count(); device < count; ++device)
        if (!current) current = handles::known_primary_context(device);
    return current ? current : handles::primary_context(0);
}

PyObject* launch_on_current(const LaunchSource& source, const launch::Layout& layout,
                            const launch::Config& config, GilManner gil, PyObject* const* arguments,
                            std::size_t count) {
    const launch::Kernel& kernel = *source.kernel;
    CurrentStream current;
    if (!find_current_stream(kernel, arguments, count, current)) return nullptr;
    try {
        if (config.needs_preparation()) make_ready(kernel, config.shape(), *current.box);
        const LaunchSource from{source.kernel, source.config, nullptr, source.metadata};
        return launch_with({kernel, layout, config, *current.box, always_open(), from,
                            queue_for(gil, *current.box), gil, &current.described},
                           arguments, count);
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* launch_on(PyObject* given, const LaunchSource& source, const launch::Layout& layout,
                    const launch::Config& config, GilManner gil, bool check,
                    PyObject* const* arguments, std::size_t count) {
    if (given == current_mark)
        return launch_on_current(source, layout, config, gil, arguments, count);
    nb::object stream = stream_argument(given);
    const LaunchSource from{source.kernel, source.config, stream.ptr(), source.metadata};
    return launch_on_stream(*instance_or_exact<Stream>(stream.ptr()), from, &layout, config, gil,
                            check, arguments, count);
}

void bind_launch(nb::module_& module) {
    for (PyMethodDef* definition : {&launch_definition, &time_driver_call_definition}) {
        PyObject* function = PyCFunction_NewEx(definition, nullptr, module.attr("__name__").ptr());
        if (!function) throw nb::python_error();
        module.attr(definition->ml_name) = nb::steal(function);
    }
}

} // namespace cudamod::python
