#include "python/device.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/stream.h"
#include "python/buffer.h"
#include "python/context.h"
#include "python/error.h"
#include "python/event.h"
#include "python/gil_released.h"
#include "python/integer_argument.h"
#include "python/memory_resource.h"
#include "python/named_tuple.h"
#include "python/public_call.h"
#include "python/stream.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace cudamod::python {

namespace {

struct Attribute {
    const char* name;
    CUdevice_attribute id;
};
constexpr Attribute kAttributes[] = {
#include "driver_device_attributes.inc"
};

/// One object per ordinal for the life of the process.
std::map<int, nb::object>& devices() {
    static auto* instance = new std::map<int, nb::object>;
    return *instance;
}

std::string device_subject(int ordinal) {
    return "device " + std::to_string(ordinal);
}

int attribute(int ordinal, CUdevice_attribute id) {
    int value = 0;
    driver::check(driver::table.cuDeviceGetAttribute(&value, id, ordinal), "cuDeviceGetAttribute",
                  [&] { return device_subject(ordinal) + ", attribute " + std::to_string(id); });
    return value;
}

std::string name(const Device& self) {
    char text[256] = "";
    driver::check(driver::table.cuDeviceGetName(text, sizeof text, self.ordinal), "cuDeviceGetName",
                  [&] { return device_subject(self.ordinal); });
    return text;
}

std::string uuid(const Device& self) {
    CUuuid value;
    driver::check(driver::table.cuDeviceGetUuid(&value, self.ordinal), "cuDeviceGetUuid",
                  [&] { return device_subject(self.ordinal); });
    std::string text;
    for (std::size_t i = 0; i < sizeof value.bytes; ++i) {
        char pair[4];
        std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(value.bytes[i]));
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += pair;
    }
    return text;
}

std::string pci_bus_id(const Device& self) {
    char text[32] = "";
    driver::check(driver::table.cuDeviceGetPCIBusId(text, sizeof text, self.ordinal),
                  "cuDeviceGetPCIBusId", [&] { return device_subject(self.ordinal); });
    return text;
}

std::pair<int, int> capability(const Device& self) {
    return {attribute(self.ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(self.ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
}

NamedTuple compute_capability_type;

nb::object compute_capability(const Device& self) {
    auto [major, minor] = capability(self);
    return compute_capability_type(major, minor);
}

std::string arch(const Device& self) {
    auto [major, minor] = capability(self);
    return std::to_string(major) + std::to_string(minor);
}

nb::object set_current(const Device& self, nb::object context) {
    begin_public_call();
    CUcontext wanted = handles::primary_context(self.ordinal);
    if (!context.is_none()) {
        const Context* given = instance<Context>(context.ptr());
        if (!given) {
            PyErr_Format(PyExc_TypeError, "Device.set_current: ctx must be a Context, not %s",
                         Py_TYPE(context.ptr())->tp_name);
            throw nb::python_error();
        }
        if (given->device != self.ordinal)
            throw nb::value_error(("Device.set_current: the context lives on device " +
                                   std::to_string(given->device) + ", not " +
                                   std::to_string(self.ordinal))
                                      .c_str());
        wanted = given->raw;
    }
    CUcontext before = handles::current_context();
    driver::check(driver::table.cuCtxSetCurrent(wanted), "cuCtxSetCurrent",
                  [&] { return device_subject(self.ordinal); });
    if (context.is_none() || !before || before == wanted) return nb::none();
    return make<Context>(before, handles::device_of(before));
}

void device_sync(const Device& self) {
    begin_public_call();
    handles::ContextScope scope(handles::primary_context(self.ordinal));
    CUresult status;
    {
        GilReleased unlocked;
        status = driver::table.cuCtxSynchronize();
    }
    driver::check(status, "cuCtxSynchronize", [&] { return device_subject(self.ordinal); });
}

bool can_access_peer(const Device& self, nb::handle peer) {
    int other = ordinal_of(peer), answer = 0;
    driver::check(driver::table.cuDeviceCanAccessPeer(&answer, self.ordinal, other),
                  "cuDeviceCanAccessPeer",
                  [&] { return device_subject(self.ordinal) + " and " + device_subject(other); });
    return answer;
}

void check_stream(const Device& self, const Stream& stream, const char* call) {
    int runs_on = handles::box_of<handles::StreamBox>(open_handle(stream)).device;
    if (runs_on == self.ordinal) return;
    throw nb::value_error((std::string(call) + ": the stream runs on " + device_subject(runs_on) +
                           ", not " + device_subject(self.ordinal))
                              .c_str());
}

nb::object create_stream(const Device& self, nb::object foreign, nb::object options) {
    begin_public_call();
    if (foreign.is_none()) return new_stream(self.ordinal, options);
    if (!options.is_none())
        throw nb::value_error("Device.create_stream: obj and options exclude each other");
    nb::object stream = stream_argument(foreign);
    check_stream(self, *instance<Stream>(stream.ptr()), "Device.create_stream");
    return stream;
}

nb::object create_event(const Device& self, nb::object options) {
    return new_event(handles::primary_context(self.ordinal), self.ordinal, options);
}

nb::object default_stream(const Device& self) {
    return make<Stream>(handles::default_stream(self.ordinal, false));
}

nb::object device_allocate(const Device& self, nb::handle size_object, nb::object stream) {
    begin_public_call();
    std::size_t size = size_argument(size_object, "Device.allocate: size");
    nb::object order = stream.is_none() ? default_stream(self) : stream_argument(stream);
    const Stream& on = *instance<Stream>(order.ptr());
    check_stream(self, on, "Device.allocate");
    if (nb::object chosen = chosen_resource(self.ordinal); !chosen.is_none())
        return chosen.attr("allocate")(size, nb::arg("stream") = order);
    refuse_capture(on.handle, "Device.allocate");
    return new_buffer(on.handle, size);
}

nb::object memory_resource(const Device& self) {
    nb::object chosen = chosen_resource(self.ordinal);
    return chosen.is_none() ? standard_resource(self.ordinal) : chosen;
}

nb::list all_devices() {
    nb::list list;
    for (int i = 0, count = handles::device_count(); i < count; ++i)
        list.append(device_object(i));
    return list;
}

PyObject* new_device(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"device_id", nullptr};
    PyObject* id = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Device", const_cast<char**>(names), &id))
        return nullptr;
    try {
        return device_object(ordinal_of(id)).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyType_Slot device_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_device)},
                              {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                              {0, nullptr}};

int property(const DeviceProperties& self, const char* name) {
    for (const Attribute& known : kAttributes)
        if (std::strcmp(known.name, name) == 0) return attribute(self.ordinal, known.id);
    throw nb::attribute_error(
        ("DeviceProperties has no attribute '" + std::string(name) + "'").c_str());
}

nb::list property_names(const DeviceProperties&) {
    nb::list names;
    for (const Attribute& known : kAttributes)
        names.append(known.name);
    return names;
}

constexpr const char* kPropertiesOrigin = "Use Device.properties.";
PyType_Slot properties_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kPropertiesOrigin>)},
    {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
    {0, nullptr}};

} // namespace

nb::object device_object(int ordinal) {
    auto& known = devices();
    if (auto it = known.find(ordinal); it != known.end()) return it->second;
    int count = handles::device_count();
    if (ordinal < 0 || ordinal >= count) {
        PyErr_Format(PyExc_ValueError, "device_id must be within [0, %d), got %d", count, ordinal);
        throw nb::python_error();
    }
    return known.try_emplace(ordinal, make<Device>(ordinal)).first->second;
}

int ordinal_of(nb::handle device) {
    if (const Device* known = instance<Device>(device.ptr())) return known->ordinal;
    if (device.is_none()) {
        int current = handles::current_device();
        return current < 0 ? 0 : current;
    }
    if (PyBool_Check(device.ptr()) || !PyIndex_Check(device.ptr())) {
        PyErr_Format(PyExc_TypeError, "device_id must be a Device, an int or None, not %s",
                     Py_TYPE(device.ptr())->tp_name);
        throw nb::python_error();
    }
    int overflow = 0;
    nb::object index = nb::steal(PyNumber_Index(device.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    long value = PyLong_AsLongAndOverflow(index.ptr(), &overflow);
    if (overflow == 0 && value < 0) {
        PyErr_Format(PyExc_ValueError, "device_id must be >= 0, got %ld", value);
        throw nb::python_error();
    }
    int count = handles::device_count();
    if (overflow != 0 || value >= count) {
        PyErr_Format(PyExc_ValueError, "device_id must be within [0, %d), got %S", count,
                     index.ptr());
        throw nb::python_error();
    }
    return static_cast<int>(value);
}

void bind_device(nb::module_& module) {
    compute_capability_type.define(module, "ComputeCapability",
                                   "Of Device.compute_capability: (9, 0) for sm_90.",
                                   {{"major", "the first number"}, {"minor", "the second number"}});
    nb::class_<DeviceProperties>(
        module, "DeviceProperties", nb::type_slots(properties_slots),
        "The driver's attributes of a device, by their names in lower case.")
        .def("__getattr__", property, nb::arg("name"))
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"))
        .def("__dir__", property_names, nb::sig("def __dir__(self) -> list[str]"));
    nb::class_<Device>(module, "Device", nb::type_slots(device_slots), nb::is_final(),
                       "A device. `Device()` is the current one (0 when there is none), "
                       "`Device(n)` the n-th; the\n"
                       "same object each time. Raises ValueError when there is no such device.")
        .def_static("get_all_devices", all_devices,
                    nb::sig("def get_all_devices() -> list[Device]"))
        .def_static("count", handles::device_count, "The number of devices.")
        .def_prop_ro("device_id", [](const Device& self) { return self.ordinal; })
        .def_prop_ro("name", name)
        .def_prop_ro("uuid", uuid)
        .def_prop_ro("pci_bus_id", pci_bus_id)
        .def_prop_ro("compute_capability", compute_capability,
                     nb::sig("def compute_capability(self) -> ComputeCapability"))
        .def_prop_ro("arch", arch, "The digits of the compute capability, such as '90'.")
        .def_prop_ro(
            "properties", [](const Device& self) { return make<DeviceProperties>(self.ordinal); },
            nb::sig("def properties(self) -> DeviceProperties"))
        .def_prop_ro(
            "context",
            [](const Device& self) {
                return make<Context>(handles::primary_context(self.ordinal), self.ordinal);
            },
            nb::sig("def context(self) -> Context"),
            "The primary context, which is retained from the first use to the end of the process.")
        .def("set_current", set_current, nb::arg("ctx") = nb::none(),
             nb::sig("def set_current(self, ctx: Context | None = None) -> Context | None"),
             "Makes the device's primary context, or `ctx`, current in the calling thread. With "
             "`ctx`, answers the\n"
             "context that was current before.")
        .def_prop_ro("default_stream", default_stream,
                     nb::sig("def default_stream(self) -> Stream"),
                     "The legacy default stream of this device.")
        .def("create_stream", create_stream, nb::arg("obj") = nb::none(),
             nb::arg("options") = nb::none(),
             nb::sig(
                 "def create_stream(self, obj: object = None, options: object = None) -> Stream"),
             "A new stream with `options` (StreamOptions or a dict), or the one that `obj` stands "
             "for.")
        .def("create_event", create_event, nb::arg("options") = nb::none(),
             nb::sig("def create_event(self, options: object = None) -> Event"))
        .def("allocate", device_allocate, nb::arg("size").none(), nb::kw_only(),
             nb::arg("stream") = nb::none(),
             nb::sig("def allocate(self, size: int, *, stream: object = None) -> Buffer"),
             "`size` bytes of device memory, in the order of `stream` (the default stream without "
             "one).\n\n"
             "Raises CUDAError, which is a MemoryError too when memory is exhausted.")
        .def_prop_rw(
            "memory_resource", memory_resource,
            [](const Device& self, nb::handle resource) {
                choose_resource(self.ordinal, resource);
            },
            nb::for_getter(nb::sig("def memory_resource(self) -> MemoryResource")),
            nb::for_setter(nb::arg("mr").none()),
            nb::for_setter(nb::sig("def memory_resource(self, mr: MemoryResource, /) -> None")),
            "Where `allocate` takes its memory from: the pool that was current first, with its "
            "release threshold\n"
            "raised, until another one is set. Setting raises TypeError for what is no "
            "MemoryResource, ValueError\n"
            "for one of another device.")
        .def("sync", device_sync, "Waits for all work of the device's primary context.")
        .def("can_access_peer", can_access_peer, nb::arg("peer"),
             nb::sig("def can_access_peer(self, peer: Device | int) -> bool"))
        .def("__int__", [](const Device& self) { return self.ordinal; })
        .def(
            "__eq__",
            [](const Device& self, nb::handle other) {
                const Device* o = instance<Device>(other.ptr());
                return o && o->ordinal == self.ordinal;
            },
            nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__", [](const Device& self) { return self.ordinal; })
        .def(
            "__reduce__",
            [](const Device& self) {
                return nb::make_tuple(
                    nb::borrow(reinterpret_cast<PyObject*>(nb::type<Device>().ptr())),
                    nb::make_tuple(self.ordinal));
            },
            nb::sig("def __reduce__(self) -> tuple[type[Device], tuple[int]]"))
        .def("__repr__",
             [](const Device& self) { return "<Device " + std::to_string(self.ordinal) + ">"; });
}

} // namespace cudamod::python
