#include "python/event.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "python/context.h"
#include "python/device.h"
#include "python/gil_released.h"
#include "python/options.h"
#include "python/public_call.h"
#include "python/python_half.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace cudamod::python {

namespace {

constexpr const char* kEventOrigin = "Use Device.create_event or Stream.record.";
PyType_Slot event_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kEventOrigin>)},
                             {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                             {0, nullptr}};

std::uintptr_t event_raw(const Event& self) {
    return self.handle ? reinterpret_cast<std::uintptr_t>(*self.handle) : 0;
}

std::string event_subject(const handles::EventHandle& event) {
    return handles::describe("event", reinterpret_cast<std::uintptr_t>(*event));
}

void event_sync(const Event& self) {
    begin_public_call();
    handles::EventHandle event = open_handle(self);
    CUresult status;
    {
        GilReleased unlocked;
        status = driver::table.cuEventSynchronize(*event);
    }
    driver::check(status, "cuEventSynchronize", [&] { return event_subject(event); });
}

bool is_done(const Event& self) {
    begin_public_call();
    handles::EventHandle event = open_handle(self);
    CUresult status = driver::table.cuEventQuery(*event);
    if (status == CUDA_ERROR_NOT_READY) return false;
    driver::check(status, "cuEventQuery", [&] { return event_subject(event); });
    return true;
}

float milliseconds_since(const Event& self, const Event& earlier) {
    begin_public_call();
    handles::EventHandle end = open_handle(self), start = open_handle(earlier);
    for (const Event* event : {&self, &earlier})
        if (!event->timing)
            throw std::runtime_error(
                "Event 0x" + event_subject(event->handle).substr(8) +
                " has no timing; create both with EventOptions(timing_enabled=True)");
    float milliseconds = 0;
    CUresult status = driver::table.cuEventElapsedTime(&milliseconds, *start, *end);
    driver::check(status, "cuEventElapsedTime", [&] {
        return event_subject(start) + " to " + event_subject(end) +
               (status == CUDA_ERROR_NOT_READY ? "; work before them has not finished: sync first"
                : status == CUDA_ERROR_INVALID_HANDLE
                    ? "; both must have been recorded, on one device"
                    : "");
    });
    return milliseconds;
}

nb::object event_ipc_descriptor(const Event& self) {
    begin_public_call();
    handles::EventHandle event = open_handle(self);
    if (!self.shared) throw std::runtime_error("Event is not IPC-enabled");
    handles::EventExport data = handles::export_event(event);
    return python_half("cudamod.event_ipc", "IPCEventDescriptor")(
        nb::bytes(data.data(), data.size()), self.blocking_sync);
}

nb::object event_from_descriptor(nb::object descriptor) {
    begin_public_call();
    if (!nb::isinstance(descriptor, python_half("cudamod.event_ipc", "IPCEventDescriptor"))) {
        PyErr_Format(PyExc_TypeError,
                     "Event.from_ipc_descriptor: ipc_descriptor must be an IPCEventDescriptor, "
                     "not %s",
                     Py_TYPE(descriptor.ptr())->tp_name);
        throw nb::python_error();
    }
    nb::object payload = descriptor.attr("_payload");
    handles::EventExport data;
    char* bytes = nullptr;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(payload.ptr(), &bytes, &length) < 0) throw nb::python_error();
    if (static_cast<std::size_t>(length) != data.size())
        throw nb::value_error("Event.from_ipc_descriptor: the descriptor is damaged");
    std::memcpy(data.data(), bytes, data.size());
    bool blocking = nb::cast<bool>(descriptor.attr("is_blocking_sync"));
    CUcontext context = handles::current_context();
    int device = context ? handles::current_device() : 0;
    if (!context) context = handles::primary_context(ordinal_of(nb::none()));
    return make<Event>(handles::import_event(context, device, data), false, blocking, true);
}

std::string event_repr(const Event& self) {
    if (!self.handle) return "<Event closed>";
    char text[48];
    std::snprintf(text, sizeof text, "<Event handle=0x%llx>",
                  static_cast<unsigned long long>(event_raw(self)));
    return text;
}

} // namespace

const handles::EventHandle& open_handle(const Event& event) {
    if (!event.handle) throw std::runtime_error("Event has been closed");
    return event.handle;
}

nb::object new_event(CUcontext context, int device, nb::handle options) {
    begin_public_call();
    check_options(options, "EventOptions", {"timing_enabled", "blocking_sync", "ipc_enabled"});
    bool timing = nb::cast<bool>(nb::bool_(option(options, "timing_enabled", nb::bool_(false))));
    bool blocking = nb::cast<bool>(nb::bool_(option(options, "blocking_sync", nb::bool_(false))));
    bool shared = nb::cast<bool>(nb::bool_(option(options, "ipc_enabled", nb::bool_(false))));
    if (shared && timing)
        throw nb::value_error("EventOptions: an event with ipc_enabled has no timing; leave "
                              "timing_enabled out");
    // Its module teaches multiprocessing how to send it.
    if (shared) python_half("cudamod.event_ipc", "IPCEventDescriptor");
    unsigned flags = (timing ? 0 : CU_EVENT_DISABLE_TIMING) |
                     (blocking ? CU_EVENT_BLOCKING_SYNC : 0) | (shared ? CU_EVENT_INTERPROCESS : 0);
    return make<Event>(handles::create_event(context, device, flags), timing, blocking, shared);
}

void bind_event(nb::module_& module) {
    nb::class_<Event>(
        module, "Event", nb::type_slots(event_slots), nb::is_weak_referenceable(),
        "A point in a stream. `later - earlier` is the time between two, in milliseconds.")
        .def(
            "close", [](Event& self) { self.handle.reset(); }, "Refuses use from now on.")
        .def_prop_ro("is_closed", [](const Event& self) { return !self.handle; })
        .def_prop_ro("handle", event_raw, "The CUevent as an int; 0 once closed.")
        .def_prop_ro("is_timing_enabled", [](const Event& self) { return self.timing; })
        .def_prop_ro("is_blocking_sync", [](const Event& self) { return self.blocking_sync; })
        .def_prop_ro("is_ipc_enabled", [](const Event& self) { return self.shared; })
        .def_prop_ro("ipc_descriptor", event_ipc_descriptor,
                     nb::sig("def ipc_descriptor(self) -> Any"),
                     "An IPCEventDescriptor, by which another process opens the event while this "
                     "one has it.\n"
                     "Raises RuntimeError unless it was made with ipc_enabled, CUDAError for an "
                     "imported one.")
        .def_static("from_ipc_descriptor", event_from_descriptor, nb::arg("ipc_descriptor").none(),
                    nb::sig("def from_ipc_descriptor(ipc_descriptor: Any) -> Event"),
                    "The event that another process exported, in the current context (device 0's "
                    "without one).")
        .def_prop_ro("is_done", is_done, "Whether everything before the event has run.")
        .def_prop_ro(
            "device",
            [](const Event& self) {
                return device_object(handles::box_of<handles::EventBox>(open_handle(self)).device);
            },
            nb::sig("def device(self) -> Device"))
        .def_prop_ro(
            "context",
            [](const Event& self) {
                const auto& box = handles::box_of<handles::EventBox>(open_handle(self));
                return make<Context>(box.context, box.device);
            },
            nb::sig("def context(self) -> Context"))
        .def("sync", event_sync, "Waits for the event.")
        .def("__sub__", milliseconds_since, nb::is_operator(), nb::arg("earlier"),
             nb::sig("def __sub__(self, earlier: Event, /) -> float"),
             "Milliseconds from `earlier` to this event (cuEventElapsedTime). Raises RuntimeError "
             "when one has no\n"
             "timing, CUDAError when one was not recorded or has not finished.")
        .def(
            "__eq__",
            [](const Event& self, nb::handle other) {
                const Event* o = instance<Event>(other.ptr());
                return o &&
                       (o == &self || (self.handle && o->handle && *self.handle == *o->handle));
            },
            nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"))
        .def("__hash__", [](const Event& self) { return self.hash; })
        .def("__repr__", event_repr);
}

} // namespace cudamod::python
