#include "python/stream.h"

#include "python/bindings.h"

#include "python/argument.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "python/context.h"
#include "python/device.h"
#include "python/event.h"
#include "python/gil_released.h"
#include "python/host_callback.h"
#include "python/integer_argument.h"
#include "python/options.h"
#include "python/public_call.h"
#include "python/stream_capture.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace cudamod::python {

PyTypeObject* Stream::python_type = nullptr;

namespace {

constexpr const char* kStreamOrigin =
    "Use Device.create_stream, Device.default_stream or Stream.from_handle.";
PyType_Slot stream_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kStreamOrigin>)},
                              {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                              {0, nullptr}};

std::uintptr_t stream_raw(const Stream& self) {
    return self.handle ? reinterpret_cast<std::uintptr_t>(*self.handle) : 0;
}

std::string stream_subject(const handles::StreamHandle& stream) {
    return handles::describe("stream", reinterpret_cast<std::uintptr_t>(*stream));
}

/// Keeps the handle for a call that lets the interpreter lock go, and makes the stream's context
/// current.
template <class Call>
void in_context(const Stream& self, const char* name, Call&& call,
                const handles::EventHandle& event = {}) {
    begin_public_call();
    handles::StreamHandle stream = open_handle(self);
    handles::ContextScope scope(handles::box_of<handles::StreamBox>(stream).context);
    CUresult status;
    {
        GilReleased unlocked;
        status = call(*stream);
    }
    driver::check(status, name, [&] {
        std::string text = stream_subject(stream);
        if (event)
            text += ", " + handles::describe("event", reinterpret_cast<std::uintptr_t>(*event));
        return text;
    });
}

void stream_sync(const Stream& self) {
    in_context(self, "cuStreamSynchronize",
               [](CUstream s) { return driver::table.cuStreamSynchronize(s); });
}

nb::object record(const Stream& self, nb::object event, nb::object options) {
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(open_handle(self));
    if (event.is_none())
        event = new_event(box.context, box.device, options);
    else if (!options.is_none())
        throw nb::value_error("Stream.record: event and options exclude each other");
    const Event* target = instance<Event>(event.ptr());
    if (!target) {
        PyErr_Format(PyExc_TypeError, "Stream.record: event must be an Event, not %s",
                     Py_TYPE(event.ptr())->tp_name);
        throw nb::python_error();
    }
    handles::EventHandle keep = open_handle(*target);
    in_context(
        self, "cuEventRecord", [&](CUstream s) { return driver::table.cuEventRecord(*keep, s); },
        keep);
    return event;
}

void wait(const Stream& self, nb::object other) {
    nb::object event = other;
    if (!nb::isinstance<Event>(other)) {
        nb::object stream = stream_argument(other);
        event = record(*instance<Stream>(stream.ptr()), nb::none(), nb::none());
    }
    handles::EventHandle keep = open_handle(*instance<Event>(event.ptr()));
    in_context(
        self, "cuStreamWaitEvent",
        [&](CUstream s) { return driver::table.cuStreamWaitEvent(s, *keep, 0); }, keep);
}

bool is_nonblocking(const Stream& self) {
    unsigned flags = 0;
    in_context(self, "cuStreamGetFlags",
               [&](CUstream s) { return driver::table.cuStreamGetFlags(s, &flags); });
    return flags & CU_STREAM_NON_BLOCKING;
}

int priority(const Stream& self) {
    int value = 0;
    in_context(self, "cuStreamGetPriority",
               [&](CUstream s) { return driver::table.cuStreamGetPriority(s, &value); });
    return value;
}

nb::object from_handle(nb::handle type, nb::handle handle) {
    begin_public_call();
    std::uint64_t value = raw_argument(handle, "Stream.from_handle: handle");
    return make_as<Stream>(type, handles::stream_from_raw(reinterpret_cast<CUstream>(value)));
}

/// The attribute of an object, or none when it has none; other errors of a property pass.
nb::object optional_attribute(nb::handle object, const char* name) {
    PyObject* value = PyObject_GetAttrString(object.ptr(), name);
    if (!value) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
        PyErr_Clear();
    }
    return nb::steal(value);
}

nb::object from_protocol(nb::handle object, nb::object answer) {
    if (PyCallable_Check(answer.ptr())) answer = answer();
    unsigned long long version = 0, value = 0;
    bool pair = PyTuple_Check(answer.ptr()) && PyTuple_GET_SIZE(answer.ptr()) == 2;
    if (pair) {
        PyObject *first = PyTuple_GET_ITEM(answer.ptr(), 0),
                 *second = PyTuple_GET_ITEM(answer.ptr(), 1);
        pair = PyLong_Check(first) && PyLong_Check(second) && !PyBool_Check(first) &&
               !PyBool_Check(second);
        if (pair) {
            version = PyLong_AsUnsignedLongLong(first);
            value = PyLong_AsUnsignedLongLong(second);
            pair = !PyErr_Occurred() && version == 0;
            PyErr_Clear();
        }
    }
    if (!pair) {
        PyErr_Format(PyExc_RuntimeError,
                     "__cuda_stream__ of %s object must answer (0, handle), not %R",
                     Py_TYPE(object.ptr())->tp_name, answer.ptr());
        throw nb::python_error();
    }
    return make<Stream>(handles::stream_from_raw(reinterpret_cast<CUstream>(value)));
}

/// The raw stream of an object of torch, CuPy or Numba that does not speak the protocol, or none.
std::optional<unsigned long long> foreign_handle(nb::handle object) {
    nb::object module = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))),
                                    "__module__", nb::none());
    if (!PyUnicode_Check(module.ptr())) return std::nullopt;
    std::string name = nb::cast<std::string>(module);
    const char* attribute = name.starts_with("torch.")  ? "cuda_stream"
                            : name.starts_with("cupy.") ? "ptr"
                            : name.starts_with("numba") ? "handle"
                                                        : nullptr;
    if (!attribute) return std::nullopt;
    nb::object value = optional_attribute(object, attribute);
    if (!value.is_valid()) return std::nullopt;
    if (nb::object inner = optional_attribute(value, "value"); inner.is_valid())
        value = inner; // a ctypes handle
    if (value.is_none()) return 0;
    if (!PyLong_Check(value.ptr())) return std::nullopt;
    return raw_argument(value, attribute);
}

bool equal(const Stream& self, nb::handle other) {
    const Stream* o = instance<Stream>(other.ptr());
    if (!o) return false;
    if (!self.handle || !o->handle) return &self == o;
    return *self.handle == *o->handle && self.box().context == o->box().context;
}

std::string stream_repr(const Stream& self) {
    if (!self.handle) return "<Stream closed>";
    char text[96];
    std::snprintf(
        text, sizeof text, "<Stream handle=0x%llx context=0x%llx>",
        static_cast<unsigned long long>(stream_raw(self)),
        static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(self.box().context)));
    return text;
}

} // namespace

const handles::StreamHandle& open_handle(const Stream& stream) {
    if (!stream.handle) throw std::runtime_error("Stream has been closed");
    return stream.handle;
}

nb::object stream_argument(nb::handle object) {
    if (nb::isinstance<Stream>(object)) return nb::borrow(object);
    if (object.is_none())
        throw nb::type_error(
            "stream is required and must not be None; pass device.default_stream explicitly to "
            "use the default stream.");
    if (nb::object answer = optional_attribute(object, "__cuda_stream__"); answer.is_valid())
        return from_protocol(object, std::move(answer));
    if (auto handle = foreign_handle(object))
        return make<Stream>(handles::stream_from_raw(reinterpret_cast<CUstream>(*handle)));
    PyErr_Format(
        PyExc_TypeError, "stream must be a Stream or an object with __cuda_stream__, not %s%s",
        Py_TYPE(object.ptr())->tp_name,
        PyLong_Check(object.ptr()) ? " (an int becomes a stream through Stream.from_handle)" : "");
    throw nb::python_error();
}

nb::object new_stream(int device, nb::handle options) {
    check_options(options, "StreamOptions", {"nonblocking", "priority"});
    bool nonblocking = nb::cast<bool>(nb::bool_(option(options, "nonblocking", nb::bool_(true))));
    nb::object wanted = option(options, "priority", nb::none());
    std::optional<int> priority;
    if (!wanted.is_none()) {
        handles::ContextScope scope(handles::primary_context(device));
        int least = 0, greatest = 0;
        driver::check(driver::table.cuCtxGetStreamPriorityRange(&least, &greatest),
                      "cuCtxGetStreamPriorityRange");
        priority = int_argument(wanted, "StreamOptions.priority");
        if (*priority > least || *priority < greatest)
            throw nb::value_error(("priority=" + std::to_string(*priority) + " is out of range [" +
                                   std::to_string(greatest) + ", " + std::to_string(least) + "]")
                                      .c_str());
    }
    return make<Stream>(handles::create_stream(device, nonblocking, priority));
}

void bind_stream(nb::module_& module) {
    auto type =
        nb::class_<Stream>(module, "Stream", nb::type_slots(stream_slots),
                           nb::is_weak_referenceable(),
                           "A queue of work on a device. Shareable between threads.")
            .def(
                "close",
                [](Stream& self) {
                    closings.fetch_add(1, std::memory_order_relaxed);
                    self.handle.reset();
                },
                "Refuses use from now on. The driver's stream ends with its last dependent.")
            .def_prop_ro("is_closed", [](const Stream& self) { return !self.handle; })
            .def_prop_ro("handle", stream_raw, "The CUstream as an int; 0 once closed.")
            .def_prop_ro("is_nonblocking", is_nonblocking,
                         "Whether the stream does not wait for the legacy default stream.")
            .def_prop_ro("priority", priority, "Lower numbers run first.")
            .def_prop_ro(
                "device",
                [](const Stream& self) {
                    return device_object(
                        handles::box_of<handles::StreamBox>(open_handle(self)).device);
                },
                nb::sig("def device(self) -> Device"))
            .def_prop_ro(
                "context",
                [](const Stream& self) {
                    const auto& box = handles::box_of<handles::StreamBox>(open_handle(self));
                    return make<Context>(box.context, box.device);
                },
                nb::sig("def context(self) -> Context"))
            .def("sync", stream_sync,
                 "Waits until everything in the stream has run. Raises CUDAError for its faults.")
            .def("record", record, nb::arg("event") = nb::none(), nb::arg("options") = nb::none(),
                 nb::sig("def record(self, event: Event | None = None, options: object = None) -> "
                         "Event"),
                 "Records `event`, or a new one made with `options`, after all work so far; "
                 "answers it.")
            .def("wait", wait, nb::arg("event_or_stream").none(),
                 nb::sig("def wait(self, event_or_stream: object) -> None"),
                 "Lets later work wait for an Event, or for all work so far in another stream.")
            .def(
                "__cuda_stream__",
                [](const Stream& self) {
                    open_handle(self);
                    return std::pair(0, stream_raw(self));
                },
                "The stream protocol: (0, handle).")
            .def("__eq__", equal, nb::arg("other").none(),
                 nb::sig("def __eq__(self, other: object, /) -> bool"))
            .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"))
            .def("__hash__", [](const Stream& self) { return self.hash; })
            .def("__repr__", stream_repr);
    def_class_method(type, "from_handle", from_handle, nb::arg("cls"), nb::arg("handle").none(),
                     nb::sig("def from_handle(cls, handle: int) -> Self"),
                     "Wraps a CUstream that somebody else owns, or finds our own again. 0, 1 "
                     "and 2 are the\n"
                     "default streams of the current device.\n\n"
                     "Raises TypeError for anything but an int, OverflowError beyond 64 bits.");
    define_capture(type);
    define_callback(type);
    Stream::python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    prove_payload<Stream>(handles::alias<handles::StreamBox>(
        std::make_shared<const handles::StreamBox>(nullptr, nullptr, 0, false, true)));
}

} // namespace cudamod::python
