#include "python/memory_resource.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/device_memory.h"
#include "handles/registry.h"
#include "python/buffer.h"
#include "python/device.h"
#include "python/error.h"
#include "python/integer_argument.h"
#include "python/memory_pool_attributes.h"
#include "python/public_call.h"
#include "python/python_half.h"
#include "python/stream.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cudamod::python {

namespace {

using handles::PoolKind;

const char* name_of(nb::handle object) {
    const char* name = Py_TYPE(object.ptr())->tp_name;
    const char* dot = std::strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/// The pool of an open resource; throws RuntimeError for a closed one.
const handles::MemoryPoolHandle& open_handle(nb::handle self) {
    const MemoryPool& resource = self_of<MemoryPool>(self);
    if (!resource.handle) throw std::runtime_error(std::string(name_of(self)) + " has been closed");
    return resource.handle;
}

handles::StreamHandle stream_of(nb::handle stream) {
    return python::open_handle(*instance<Stream>(stream_argument(stream).ptr()));
}

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
        PyErr_Format(PyExc_TypeError, "%s() takes no arguments", name_of(self));
        return -1;
    }
    return 0;
}

constexpr const char* kOrigin = "Use DeviceMemoryResource or Device.memory_resource.";
PyType_Slot base_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_base)},
                            {Py_tp_init, reinterpret_cast<void*>(init_base)},
                            {0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kOrigin>)},
                       {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                       {0, nullptr}};

[[noreturn]] void not_implemented(nb::handle self, const char* member) {
    PyErr_Format(PyExc_TypeError, "%s must be implemented by %s", member, name_of(self));
    throw nb::python_error();
}

/// The class that a static constructor was asked for, which must be a class of `Native`.
template <class Native>
PyTypeObject* class_of(nb::handle type) {
    auto* base = reinterpret_cast<PyTypeObject*>(nb::type<Native>().ptr());
    if (!PyType_Check(type.ptr()) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), base)) {
        PyErr_Format(PyExc_TypeError, "%R is no class of memory resources", type.ptr());
        throw nb::python_error();
    }
    return reinterpret_cast<PyTypeObject*>(type.ptr());
}

handles::PoolPlace place_of(const std::string& kind, const std::string& location, int id) {
    PoolKind of = kind == "device"   ? PoolKind::Device
                  : kind == "pinned" ? PoolKind::Pinned
                                     : PoolKind::Managed;
    CUmemLocationType where = location == "device"      ? CU_MEM_LOCATION_TYPE_DEVICE
                              : location == "host"      ? CU_MEM_LOCATION_TYPE_HOST
                              : location == "host_numa" ? CU_MEM_LOCATION_TYPE_HOST_NUMA
                                                        : CU_MEM_LOCATION_TYPE_INVALID;
#if CUDA_VERSION < 13000
    if (of == PoolKind::Managed)
        driver::raise(CUDA_ERROR_NOT_SUPPORTED, "cuMemPoolCreate",
                      "this build of cudamod is for CUDA 12, which has no managed memory pools");
#endif
    return {of, where, id};
}

nb::object made(PyTypeObject* type, handles::MemoryPoolHandle pool, bool owns) {
    return nb::steal(make_in<MemoryPool>(type, std::move(pool), owns));
}

nb::object new_pool(nb::handle type, const std::string& kind, const std::string& location, int id,
                    bool ipc_enabled, nb::handle max_size) {
    begin_public_call();
    PyTypeObject* made_type = class_of<MemoryPool>(type);
    std::size_t limit = size_argument(max_size, "max_size");
    return made(made_type, handles::create_pool(place_of(kind, location, id), ipc_enabled, limit),
                true);
}

nb::object current_pool(nb::handle type, const std::string& kind, const std::string& location,
                        int id) {
    begin_public_call();
    PyTypeObject* made_type = class_of<MemoryPool>(type);
    handles::PoolPlace place = place_of(kind, location, id);
    handles::MemoryPoolHandle pool;
    if (place.kind == PoolKind::Device) {
        int supported = 0;
        driver::check(driver::table.cuDeviceGetAttribute(
                          &supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, id),
                      "cuDeviceGetAttribute", "memory pools supported");
        if (!supported)
            throw std::runtime_error("device " + std::to_string(id) + " has no memory pools");
    }
    return made(made_type, handles::current_pool(place), false);
}

nb::object imported_pool(nb::handle type, const std::string& kind, const std::string& location,
                         int id, nb::handle file) {
    begin_public_call();
    PyTypeObject* made_type = class_of<MemoryPool>(type);
    int descriptor = int_argument(file, "from_allocation_handle: alloc_handle");
    if (descriptor < 0)
        throw nb::value_error(
            ("from_allocation_handle: alloc_handle must be a file descriptor, not " +
             std::to_string(descriptor))
                .c_str());
    return made(made_type, handles::import_pool(place_of(kind, location, id), descriptor), true);
}

int export_pool(nb::handle self) {
    begin_public_call();
    handles::MemoryPoolHandle pool = open_handle(self);
    return handles::export_pool(pool);
}

/// Memory that a Buffer owns would be freed twice.
void refuse_owned(CUdeviceptr raw, const std::string& what) {
    if (handles::registry<handles::DeviceMemoryBox>().find(raw))
        throw nb::value_error(
            (what + handles::describe("memory", raw) + " belongs to a Buffer: close that").c_str());
}

void deallocate(nb::handle self, nb::handle ptr, nb::handle size, nb::handle stream) {
    begin_public_call();
    std::string what = std::string(name_of(self)) + ".deallocate: ";
    std::uint64_t raw = raw_argument(ptr, (what + "ptr").c_str());
    size_argument(size, (what + "size").c_str());
    handles::StreamHandle order = stream_of(stream);
    if (!raw) return;
    refuse_owned(raw, what);
    handles::free_in_order(self_of<MemoryPool>(self).handle, order, raw);
}

std::uintptr_t raw(const MemoryPool& self) {
    return self.handle ? reinterpret_cast<std::uintptr_t>(*self.handle) : 0;
}

nb::object attributes(nb::handle self) {
    begin_public_call();
    return make<MemoryPoolAttributes>(open_handle(self));
}

bool has_access(nb::handle self, int device) {
    handles::MemoryPoolHandle pool = open_handle(self);
    return handles::has_access(pool, device);
}

void set_access(nb::handle self, const std::vector<int>& given, const std::vector<int>& taken) {
    begin_public_call();
    handles::MemoryPoolHandle pool = open_handle(self);
    handles::set_access(pool, given, taken);
}

nb::tuple location(nb::handle self) {
    const MemoryPool& resource = self_of<MemoryPool>(self);
    const char* name = "none";
    switch (resource.place.location) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        name = "device";
        break;
    case CU_MEM_LOCATION_TYPE_HOST:
        name = "host";
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        name = "host_numa";
        break;
    default:
        break;
    }
    return nb::make_tuple(name, resource.place.id);
}

std::string repr(nb::handle self) {
    const MemoryPool& resource = self_of<MemoryPool>(self);
    if (!resource.handle) return std::string("<") + name_of(self) + " closed>";
    std::string text =
        std::string("<") + name_of(self) + " " + handles::describe_pool(resource.handle);
    if (resource.place.kind == PoolKind::Device)
        text += " device=" + std::to_string(resource.place.id);
    return text + (resource.imported ? " mapped>" : ">");
}

nb::object allocate_plain(nb::handle self, nb::handle size_object, nb::handle stream) {
    begin_public_call();
    const PlainMemory& resource = self_of<PlainMemory>(self);
    std::size_t size =
        size_argument(size_object, (std::string(name_of(self)) + ".allocate: size").c_str());
    handles::StreamHandle order;
    if (!stream.is_none()) order = stream_of(stream);
    handles::DeviceMemoryHandle memory;
    if (size && resource.device >= 0) {
        if (!order) order = handles::default_stream(resource.device, false);
        memory = handles::allocate_at_once(order, size);
    } else if (size) {
        CUcontext context =
            order ? handles::box_of<handles::StreamBox>(order).context : handles::current_context();
        if (!context)
            throw std::runtime_error(std::string(name_of(self)) +
                                     ".allocate: no context is current; call Device.set_current() "
                                     "first, or pass a stream");
        memory = handles::allocate_pinned(context, order, size);
    }
    return buffer_of(std::move(memory), resource.device, false, nb::borrow(self));
}

void deallocate_plain(nb::handle self, nb::handle ptr, nb::handle size, nb::handle stream) {
    begin_public_call();
    const PlainMemory& resource = self_of<PlainMemory>(self);
    std::string what = std::string(name_of(self)) + ".deallocate: ";
    std::uint64_t raw = raw_argument(ptr, (what + "ptr").c_str());
    size_argument(size, (what + "size").c_str());
    handles::StreamHandle order;
    if (!stream.is_none()) order = stream_of(stream);
    if (!raw) return;
    refuse_owned(raw, what);
    CUcontext context = order                  ? handles::box_of<handles::StreamBox>(order).context
                        : resource.device >= 0 ? handles::primary_context(resource.device)
                                               : handles::current_context();
    if (!context) throw std::runtime_error(what + "no context is current; pass a stream");
    handles::free_at_once(context, order, raw, resource.device < 0);
}

nb::object new_plain(nb::handle type, int device) {
    return nb::steal(make_in<PlainMemory>(class_of<PlainMemory>(type), PlainMemory{{}, device}));
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

void refuse_capture(const handles::StreamHandle& stream, const char* what) {
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(stream);
    if (box.raw == nullptr || box.raw == CU_STREAM_LEGACY) return;
    handles::ContextScope scope(box.context);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    driver::check(driver::table.cuStreamIsCapturing(box.raw, &status), "cuStreamIsCapturing", what);
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) return;
    throw std::runtime_error(
        std::string(what) +
        " cannot allocate on a capturing stream: the memory would be the graph's, allocated anew "
        "at each replay. Allocate before the capture, or on another stream");
}

nb::object allocate_from(nb::handle self, nb::handle size_object, nb::handle stream) {
    begin_public_call();
    const MemoryPool& resource = self_of<MemoryPool>(self);
    handles::MemoryPoolHandle pool = open_handle(self);
    std::string what = std::string(name_of(self)) + ".allocate";
    if (resource.imported)
        throw nb::type_error((what + ": the pool was imported from another process; only its "
                                     "exporter allocates from it")
                                 .c_str());
    std::size_t size = size_argument(size_object, (what + ": size").c_str());
    handles::StreamHandle order = stream_of(stream);
    refuse_capture(order, name_of(self));
    handles::DeviceMemoryHandle memory;
    if (size) memory = handles::allocate(pool, order, size);
    return buffer_of(std::move(memory), handles::box_of<handles::MemoryPoolBox>(pool).device(),
                     resource.place.kind == PoolKind::Managed, nb::borrow(self));
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
        open_handle(resource);
        if (pool->place.kind == PoolKind::Device && pool->place.id != device)
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
    nb::class_<MemoryPool, MemoryResource>(module, "MemoryPool", nb::type_slots(slots),
                                           "A memory resource that is a pool.")
        .def("allocate", allocate_from, nb::arg("size").none(), nb::kw_only(),
             nb::arg("stream").none(),
             nb::sig("def allocate(self, size: int, *, stream: object) -> Buffer"),
             "`size` bytes of the pool in the order of `stream`, on which they are freed as "
             "well.\n\n"
             "Raises RuntimeError when the resource is closed or the stream captures, TypeError "
             "for a pool of\n"
             "another process, CUDAError, which is a MemoryError too when memory is exhausted.")
        .def("deallocate", deallocate, nb::arg("ptr").none(), nb::arg("size").none(), nb::kw_only(),
             nb::arg("stream").none(),
             nb::sig("def deallocate(self, ptr: int, size: int, *, stream: object) -> None"),
             "Frees memory of the pool that no Buffer owns, in the order of `stream`; a closed "
             "resource still does.\n"
             "Raises ValueError for memory that a Buffer owns, CUDAError for what is no memory.")
        .def(
            "close", [](MemoryPool& self) { self.handle.reset(); },
            "Refuses use from now on. A pool of our own ends with its last Buffer and view.")
        .def_prop_ro("is_closed", [](const MemoryPool& self) { return !self.handle; })
        .def_prop_ro("handle", raw, "The CUmemoryPool as an int; 0 once closed.")
        .def_prop_ro(
            "is_handle_owned", [](const MemoryPool& self) { return self.owns; },
            "Whether the pool was made for this resource.")
        .def_prop_ro(
            "is_ipc_enabled",
            [](const MemoryPool& self) { return self.exportable || self.imported; },
            "Whether the pool's memory can be shared with other processes.")
        .def_prop_ro(
            "is_mapped", [](const MemoryPool& self) { return self.imported; },
            "Whether the pool was imported from another process.")
        .def_prop_ro("attributes", attributes,
                     nb::sig("def attributes(self) -> MemoryPoolAttributes"))
        .def_prop_ro(
            "device_id",
            [](const MemoryPool& self) {
                return self.place.location == CU_MEM_LOCATION_TYPE_DEVICE ? self.place.id : -1;
            },
            "The device that the memory lies on, or prefers; -1 for the host.")
        .def_prop_ro("is_device_accessible", [](const MemoryPool&) { return true; })
        .def_prop_ro("is_host_accessible",
                     [](const MemoryPool& self) { return self.place.kind != PoolKind::Device; })
        .def_prop_ro("is_managed",
                     [](const MemoryPool& self) { return self.place.kind == PoolKind::Managed; })
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> tuple[Any, ...]"))
        .def("__repr__", repr);
    nb::class_<PlainMemory, MemoryResource>(module, "PlainMemory", nb::type_slots(slots),
                                            "A memory resource without a pool.")
        .def("allocate", allocate_plain, nb::arg("size").none(), nb::kw_only(),
             nb::arg("stream") = nb::none(),
             nb::sig("def allocate(self, size: int, *, stream: object = None) -> Buffer"),
             "`size` bytes, at once. `stream` is waited for before they are freed.")
        .def(
            "deallocate", deallocate_plain, nb::arg("ptr").none(), nb::arg("size").none(),
            nb::kw_only(), nb::arg("stream") = nb::none(),
            nb::sig("def deallocate(self, ptr: int, size: int, *, stream: object = None) -> None"),
            "Frees memory that no Buffer owns, once `stream` has run. Raises ValueError for memory "
            "that one owns.")
        .def_prop_ro("is_device_accessible", [](const PlainMemory&) { return true; })
        .def_prop_ro("is_host_accessible", [](const PlainMemory& self) { return self.device < 0; })
        .def_prop_ro("device_id", [](const PlainMemory& self) { return self.device; })
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"));
    module.def("new_pool", new_pool, nb::arg("type"), nb::arg("kind"), nb::arg("location"),
               nb::arg("id"), nb::arg("ipc_enabled"), nb::arg("max_size"),
               nb::sig("def new_pool(type: type[_Pool], kind: str, location: str, id: int, "
                       "ipc_enabled: bool, max_size: int) -> _Pool"));
    module.def("current_pool", current_pool, nb::arg("type"), nb::arg("kind"), nb::arg("location"),
               nb::arg("id"),
               nb::sig("def current_pool(type: type[_Pool], kind: str, location: str, id: int) -> "
                       "_Pool"));
    module.def("imported_pool", imported_pool, nb::arg("type"), nb::arg("kind"),
               nb::arg("location"), nb::arg("id"), nb::arg("file"),
               nb::sig("def imported_pool(type: type[_Pool], kind: str, location: str, id: int, "
                       "file: int) -> _Pool"));
    module.def("export_pool", export_pool, nb::arg("pool"),
               nb::sig("def export_pool(pool: MemoryPool) -> int"),
               "A file descriptor by which another process imports the pool.");
    module.def("pool_location", location, nb::arg("pool"),
               nb::sig("def pool_location(pool: MemoryPool) -> tuple[str, int]"),
               "The kind of place that the pool's memory lies at or prefers, and its number or "
               "-1.");
    module.def("pool_has_access", has_access, nb::arg("pool"), nb::arg("device"),
               nb::sig("def pool_has_access(pool: MemoryPool, device: int) -> bool"));
    module.def("set_pool_access", set_access, nb::arg("pool"), nb::arg("given"), nb::arg("taken"),
               nb::sig("def set_pool_access(pool: MemoryPool, given: Sequence[int], taken: "
                       "Sequence[int]) -> None"));
    module.def("new_plain_memory", new_plain, nb::arg("type"), nb::arg("device"),
               nb::sig("def new_plain_memory(type: type[_Plain], device: int) -> _Plain"));
}

} // namespace cudamod::python
