#include "python/host_callback.h"

#include "driver/host_callbacks.h"
#include "handles/destruction.h"
#include "handles/host_function.h"
#include "handles/report.h"
#include "python/gil_released.h"
#include "python/public_call.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cudamod::python {

namespace {

using namespace std::chrono_literals;
constexpr auto kLastMoment = 5s;

/// A function of Python's that the driver calls.
struct Callback {
    PyObject* function;
    bool captured;
    bool pending = true; // a captured one counts as pending until its graph lets it go
};

std::atomic<bool> stopped{false};
std::atomic<int> inside{0}; // threads of the driver's in Python, or about to be

std::mutex& finished_mutex() {
    static auto* instance = new std::mutex;
    return *instance;
}

std::vector<Callback*>& finished() {
    static auto* instance = new std::vector<Callback*>;
    return *instance;
}

void finish(Callback* callback) noexcept {
    try {
        std::lock_guard lock(finished_mutex());
        finished().push_back(callback);
        handles::attention.fetch_or(handles::kReportsPending, std::memory_order_relaxed);
    } catch (...) {
        // Out of memory: the function stays.
    }
}

/// Python in a thread that it may not know. At finalisation Python before 3.14 ends a thread that
/// asks for the lock by unwinding it, and the driver's frames are no place for that.
void call_python(PyObject* function) noexcept {
    try {
        PyGILState_STATE state = PyGILState_Ensure();
        if (PyObject* result = PyObject_CallNoArgs(function))
            Py_DECREF(result);
        else
            PyErr_WriteUnraisable(function);
        PyGILState_Release(state);
    } catch (...) {
        for (;;)
            std::this_thread::sleep_for(24h);
    }
}

void CUDA_CB run(void* data) {
    auto* callback = static_cast<Callback*>(data);
    inside.fetch_add(1);
    if (!stopped.load()) {
        const driver::InHostCallback here; // a captured one comes without the table's count
        call_python(callback->function);
        if (!callback->captured) finish(callback);
    }
    inside.fetch_sub(1);
}

void CUDA_CB release(void* data) {
    auto* callback = static_cast<Callback*>(data);
    if (callback->pending) driver::pending_host_callbacks.fetch_sub(1, std::memory_order_release);
    finish(callback);
}

void add_callback(const Stream& self, nb::object function) {
    begin_public_call();
    handles::StreamHandle stream = open_handle(self);
    if (!PyCallable_Check(function.ptr())) {
        PyErr_Format(PyExc_TypeError, "Stream.add_callback: function must be callable, not %s",
                     Py_TYPE(function.ptr())->tp_name);
        throw nb::python_error();
    }
    auto callback =
        std::make_unique<Callback>(Callback{nb::object(function).release().ptr(), false});
    try {
        GilReleased unlocked;
        handles::enqueue(stream, {run, release, callback.get()}, callback->captured);
    } catch (...) {
        if (callback->captured)
            callback.release()->pending = false; // the graph's, which has no node of it
        else
            Py_DECREF(callback->function);
        throw;
    }
    callback.release(); // the driver's; it may have run already
}

} // namespace

void drop_finished_callbacks() noexcept {
    std::vector<Callback*> all;
    {
        std::lock_guard lock(finished_mutex());
        all.swap(finished());
    }
    for (Callback* callback : all) {
        Py_DECREF(callback->function);
        delete callback;
    }
}

void stop_callbacks() noexcept {
    stopped.store(true);
    if (!handles::driver_is_ours()) return; // a fork has none of the driver's threads
    GilReleased unlocked;
    auto end = std::chrono::steady_clock::now() + kLastMoment;
    while (inside.load() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(1ms);
}

void define_callback(nb::class_<Stream>& type) {
    type.def("add_callback", add_callback, nb::arg("function").none(),
             nb::sig("def add_callback(self, function: Callable[[], object]) -> None"),
             "Calls `function()` on a thread of the driver's after all work so far; into a stream "
             "that captures, each\n"
             "time that the graph runs. It may not use CUDA: the driver refuses. Its exceptions "
             "become unraisable\n"
             "ones. Once the interpreter finalises, and after a fault, it is not called.\n\n"
             "Raises TypeError for what can't be called.");
}

} // namespace cudamod::python
