#include "python/bindings.h"

#include "driver/environment.h"
#include "driver/status.h"
#include "python/error.h"
#include "python/instance.h"
#include "python/kernel.h"
#include "python/launch_config.h"
#include "python/launch_log.h"
#include "python/launch_path.h"
#include "python/stream.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <charconv>
#include <optional>
#include <string>

namespace cudamod::python {

namespace {

std::atomic<bool> blocking{false};

nb::ft_mutex hooks_mutex; // guards the two references, which are taken and changed together
PyObject *enter_hook = nullptr, *exit_hook = nullptr;

/// A launch that a hook makes is watched by none, or it would never end.
thread_local bool inside_hook = false;

struct InsideHook {
    InsideHook() { inside_hook = true; }
    ~InsideHook() { inside_hook = false; }
};

void watch() {
    nb::ft_lock_guard lock(hooks_mutex);
    if (blocking || launch_log_length() || enter_hook)
        handles::attention.fetch_or(handles::kLaunchesObserved, std::memory_order_relaxed);
    else
        handles::attention.fetch_and(~handles::kLaunchesObserved, std::memory_order_relaxed);
}

void set_launch_hooks(nb::object enter, nb::object exit) {
    nb::object old_enter, old_exit; // their end may run Python
    {
        nb::ft_lock_guard lock(hooks_mutex);
        old_enter = nb::steal(enter_hook);
        old_exit = nb::steal(exit_hook);
        enter_hook = enter.is_none() ? nullptr : enter.release().ptr();
        exit_hook = exit.is_none() ? nullptr : exit.release().ptr();
    }
    watch();
}

/// The hooks of one launch: entered before, left after it whatever became of it.
class Hooks {
  public:
    explicit Hooks(const LaunchParts& parts) : parts_(parts) {
        if (inside_hook) return;
        nb::ft_lock_guard lock(hooks_mutex);
        enter_ = nb::borrow(enter_hook);
        exit_ = nb::borrow(exit_hook);
    }

    /// False with a Python error set: a hook raised, nothing is launched.
    bool enter(PyObject* const* arguments, std::size_t count) {
        if (!enter_.is_valid()) return true;
        try {
            const LaunchSource& source = parts_.source;
            nb::object kernel = make<Kernel>(source.kernel);
            nb::object config = source.config ? nb::borrow(source.config)
                                              : make<LaunchConfig>(launch::Config(parts_.config));
            nb::object stream = source.stream
                                    ? nb::borrow(source.stream)
                                    : make<Stream>(handles::stream_from_raw(parts_.stream.raw));
            nb::object metadata = source.metadata ? nb::borrow(source.metadata) : nb::none();
            nb::object values = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
            if (!values.is_valid()) throw nb::python_error();
            for (std::size_t i = 0; i < count; ++i) {
                Py_INCREF(arguments[i]);
                PyTuple_SET_ITEM(values.ptr(), static_cast<Py_ssize_t>(i), arguments[i]);
            }
            InsideHook inside;
            token_ = enter_(kernel, config, stream, values, metadata);
        } catch (...) {
            set_python_error();
            return false;
        }
        if (parts_.open) return true;
        PyErr_Format(PyExc_RuntimeError, "kernel '%s': Stream has been closed by a launch hook",
                     parts_.kernel.name().c_str());
        return leave(false);
    }

    /// Keeps the launch's error, if there is one; else a hook's own counts. False with an error.
    bool leave(bool launched) {
        if (!token_.is_valid()) return launched;
        PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
        if (!launched) PyErr_Fetch(&type, &value, &traceback);
        PyObject* done;
        {
            InsideHook inside;
            done = PyObject_CallOneArg(exit_.ptr(), token_.ptr());
        }
        Py_XDECREF(done);
        if (launched) return done;
        if (!done) PyErr_WriteUnraisable(exit_.ptr());
        PyErr_Restore(type, value, traceback);
        return false;
    }

  private:
    const LaunchParts& parts_;
    nb::object enter_, exit_, token_;
};

/// Waits until the launch has run. False with the error of its fault set.
bool wait_for(const LaunchParts& parts) {
    if (launch::is_capturing(parts.stream.raw)) return true;
    CUresult status;
    {
        GilReleased unlocked;
        launch::DefaultStreamScope scope;
        status = parts.stream.is_default ? scope.enter(parts.stream) : CUDA_SUCCESS;
        if (status == CUDA_SUCCESS) status = driver::table.cuStreamSynchronize(parts.stream.raw);
    }
    try {
        driver::check(status, "cuStreamSynchronize", [&] {
            const launch::Shape& shape = parts.config.shape();
            return "kernel '" + parts.kernel.name() + "', grid " + shape.grid.text() + ", block " +
                   shape.block.text() + "; each launch is waited for, as " +
                   driver::kLaunchBlockingVariable.name + " asks";
        });
        return true;
    } catch (...) {
        set_python_error();
        return false;
    }
}

struct LoggedCall {
    CUresult operator()(const LaunchParts& parts, void** pointers) const {
        note_in_launch_log(parts, pointers);
        return CallDriver()(parts, pointers);
    }
};

bool flag(const driver::Variable& variable) {
    std::optional<std::string> text = driver::read(variable);
    if (!text || *text == "0") return false;
    if (*text == "1") return true;
    throw nb::import_error(
        (std::string(variable.name) + " must be " + variable.values + ", not '" + *text + "'")
            .c_str());
}

unsigned log_length() {
    std::optional<std::string> text = driver::read(driver::kLaunchLogVariable);
    unsigned length = 0;
    if (!text) return 0;
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), length);
    if (error == std::errc() && end == text->data() + text->size()) return length;
    throw nb::import_error((std::string(driver::kLaunchLogVariable.name) +
                            " must be a number of launches, not '" + *text + "'")
                               .c_str());
}

/// A launch with what comes before or around it.
template <class Launch, class LoggedLaunch>
PyObject* attentively(const LaunchParts& parts, PyObject* const* arguments, std::size_t count,
                      Launch&& launch, LoggedLaunch&& logged_launch) {
    if (!reports_delivered()) return nullptr;
    if (!parts.open) { // a warning's filter ran Python
        PyErr_Format(PyExc_RuntimeError, "kernel '%s': Stream has been closed",
                     parts.kernel.name().c_str());
        return nullptr;
    }
    if (!(handles::attention.load(std::memory_order_relaxed) & handles::kLaunchesObserved))
        return launch();
    Hooks hooks(parts);
    if (!hooks.enter(arguments, count)) return nullptr;
    PyObject* result = logged_launch();
    if (result && blocking.load(std::memory_order_relaxed) && !wait_for(parts)) {
        Py_DECREF(result);
        result = nullptr;
    }
    if (!hooks.leave(result)) Py_CLEAR(result);
    return result;
}

} // namespace

PyObject* launch_attentively(const LaunchParts& parts, PyObject* const* arguments,
                             std::size_t count) {
    return attentively(
        parts, arguments, count, [&] { return launch_unobserved(parts, arguments, count); },
        [&] { return launch_unobserved(parts, arguments, count, LoggedCall()); });
}

PyObject* launch_packed_attentively(const LaunchParts& parts, PyObject* const* arguments,
                                    std::size_t count, void** pointers) {
    return attentively(
        parts, arguments, count, [&] { return launch_packed(parts, pointers); },
        [&] { return launch_packed(parts, pointers, LoggedCall()); });
}

void bind_launch_observer(nb::module_& module) {
    blocking = flag(driver::kLaunchBlockingVariable);
    set_launch_log_length(log_length());
    watch();
    module.def("set_launch_hooks", set_launch_hooks, nb::arg("enter").none(),
               nb::arg("exit").none(),
               nb::sig("def set_launch_hooks(enter: Callable[..., object] | None, exit: "
                       "Callable[[Any], object] | None) -> None"),
               "Calls enter(kernel, config, stream, arguments, metadata) before each launch, and "
               "exit with its answer after.");
    module.def("launch_log", launch_log, nb::sig("def launch_log() -> tuple[str, ...]"),
               "The last launches of each device, as CUDAMOD_LAUNCH_LOG asks for them.");
}

} // namespace cudamod::python
