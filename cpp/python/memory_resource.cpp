#include "python/memory_resource.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/device_memory.h"
#include "handles/registry.h"
#include "python/error.h"
#include "python/memory_pool.h"
#include "python/python_half.h"

#include <cstring>
#include <map>
#include <string>

namespace cudamod::python {

namespace {

/// A MemoryResource of Python: any arguments are its __init__'s.
PyObject* new_base(PyTypeObject* type, PyObject*, PyObject*) {
    try {
        return make_in<MemoryResource>(type);
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

int init_base(PyObject* self, PyObject* args, PyObject* kwargs) {
    // object's own __init__ takes none either
    if (Py_TYPE(self)->tp_init == init_base &&
        (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs)))) {
        PyErr_Format(PyExc_TypeError, "%s() takes no arguments", class_name(self));
        return -1;
    }
    return 0;
}

PyType_Slot base_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_base)},
                            {Py_tp_init, reinterpret_cast<void*>(init_base)},
                            {0, nullptr}};

[[noreturn]] void not_implemented(nb::handle self, const char* member) {
    PyErr_Format(PyExc_TypeError, "%s.%s must be implemented by subclasses", class_name(self),
                 member);
    throw nb::python_error();
}

/// What was set by device, and what stands for a device's current pool.
struct Resources {
    std::map<int, nb::object> chosen, standard;
};

Resources& resources() {
    static auto* instance = new Resources;
    return *instance;
}

} // namespace

const char* class_name(nb::handle object) {
    const char* name = Py_TYPE(object.ptr())->tp_name;
    const char* dot = std::strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/// Memory that a Buffer owns would be freed twice.
void refuse_owned(CUdeviceptr raw, const std::string& what) {
    if (handles::registry<handles::DeviceMemoryBox>().find(raw))
        throw nb::value_error(
            (what + handles::describe("memory", raw) + " belongs to a Buffer: close that").c_str());
}

void refuse_capture(const handles::StreamHandle& stream, const char* what) {
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(stream);
    if (box.raw == nullptr || box.raw == CU_STREAM_LEGACY) return;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    auto ask = [&] { return driver::table.cuStreamIsCapturing(box.raw, &status); };
    if (box.is_default) {
        handles::ContextScope scope(box.context);
        driver::check(ask(), "cuStreamIsCapturing", what);
    } else {
        driver::check(ask(), "cuStreamIsCapturing", what);
    }
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) return;
    throw std::runtime_error(
        std::string(what) +
        " cannot allocate on a capturing stream: the memory would be the graph's, allocated anew "
        "at each replay. Allocate before the capture, or on another stream");
}

nb::object chosen_resource(int device) {
    auto it = resources().chosen.find(device);
    return it == resources().chosen.end() ? nb::none() : it->second;
}

nb::object standard_resource(int device) {
    auto it = resources().standard.find(device);
    if (it != resources().standard.end()) return it->second;
    nb::object made = python_half("cudamod.memory_resource", "standard_resource")(
        device, static_cast<bool>(handles::device_pool(device)));
    return resources().standard.try_emplace(device, std::move(made)).first->second;
}

void choose_resource(int device, nb::handle resource) {
    if (!nb::isinstance<MemoryResource>(resource)) {
        PyErr_Format(PyExc_TypeError, "Device.memory_resource must be a MemoryResource, not %s",
                     Py_TYPE(resource.ptr())->tp_name);
        throw nb::python_error();
    }
    if (const MemoryPool* pool = instance<MemoryPool>(resource.ptr())) {
        open_pool(resource);
        if (pool->place.kind == handles::PoolKind::Device && pool->place.id != device)
            throw nb::value_error(("Device.memory_resource: the memory lies on device " +
                                   std::to_string(pool->place.id) + ", not " +
                                   std::to_string(device))
                                      .c_str());
    }
    nb::object before = chosen_resource(device); // let go when the new one stands
    resources().chosen[device] = nb::borrow(resource);
}

void bind_memory_resource(nb::module_& module) {
    nb::class_<MemoryResource>(
        module, "MemoryResource", nb::type_slots(base_slots), nb::is_weak_referenceable(),
        "What gives memory. Classes of Python derive from it: they implement `allocate`, "
        "`deallocate`,\n"
        "`is_device_accessible`, `is_host_accessible` and `device_id`.")
        .def(
            "allocate",
            [](nb::handle self, nb::args, nb::kwargs) { not_implemented(self, "allocate"); },
            nb::sig("def allocate(self, size: int, *, stream: object) -> Buffer"))
        .def(
            "deallocate",
            [](nb::handle self, nb::args, nb::kwargs) { not_implemented(self, "deallocate"); },
            nb::sig("def deallocate(self, ptr: int, size: int, *, stream: object) -> None"))
        .def_prop_ro("is_device_accessible",
                     [](nb::handle self) -> bool { not_implemented(self, "is_device_accessible"); })
        .def_prop_ro("is_host_accessible",
                     [](nb::handle self) -> bool { not_implemented(self, "is_host_accessible"); })
        .def_prop_ro("is_managed", [](nb::handle) { return false; })
        .def_prop_ro("device_id",
                     [](nb::handle self) -> int { not_implemented(self, "device_id"); });
}

} // namespace cudamod::python
