#include "python/memory_pool.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/destruction.h"
#include "handles/device_memory.h"
#include "python/buffer.h"
#include "python/integer_argument.h"
#include "python/memory_pool_attributes.h"
#include "python/public_call.h"
#include "python/stream.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cudamod::python {

namespace {

using handles::PoolKind;

constexpr const char* kMemoryPoolOrigin = "Use DeviceMemoryResource or Device.memory_resource.";
PyType_Slot memory_pool_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kMemoryPoolOrigin>)},
    {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
    {0, nullptr}};

handles::StreamHandle memory_pool_stream(nb::handle stream) {
    return open_handle(*instance<Stream>(stream_argument(stream).ptr()));
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
    handles::MemoryPoolHandle pool = open_pool(self);
    return handles::export_pool(pool);
}

nb::object memory_pool_allocate(nb::handle self, nb::handle size_object, nb::handle stream) {
    begin_public_call();
    const MemoryPool& resource = self_of<MemoryPool>(self);
    handles::MemoryPoolHandle pool = open_pool(self);
    std::string what = std::string(class_name(self)) + ".allocate";
    if (resource.imported)
        throw nb::type_error((what + ": the pool was imported from another process; only its "
                                     "exporter allocates from it")
                                 .c_str());
    std::size_t size = size_argument(size_object, (what + ": size").c_str());
    handles::StreamHandle order = memory_pool_stream(stream);
    refuse_capture(order, class_name(self));
    handles::DeviceMemoryHandle memory;
    if (size) memory = handles::allocate(pool, order, size);
    return buffer_of(std::move(memory), handles::box_of<handles::MemoryPoolBox>(pool).device(),
                     resource.place.kind == PoolKind::Managed, nb::borrow(self));
}

void memory_pool_deallocate(nb::handle self, nb::handle ptr, nb::handle size, nb::handle stream) {
    begin_public_call();
    std::string what = std::string(class_name(self)) + ".deallocate: ";
    std::uint64_t raw = raw_argument(ptr, (what + "ptr").c_str());
    size_argument(size, (what + "size").c_str());
    handles::StreamHandle order = memory_pool_stream(stream);
    if (!raw) return;
    refuse_owned(raw, what);
    handles::free_in_order(self_of<MemoryPool>(self).handle, order, raw);
}

std::uintptr_t memory_pool_raw(const MemoryPool& self) {
    return self.handle ? reinterpret_cast<std::uintptr_t>(*self.handle) : 0;
}

nb::object attributes(nb::handle self) {
    begin_public_call();
    return make<MemoryPoolAttributes>(open_pool(self));
}

bool has_access(nb::handle self, int device) {
    handles::MemoryPoolHandle pool = open_pool(self);
    return handles::has_access(pool, device);
}

void set_access(nb::handle self, const std::vector<int>& given, const std::vector<int>& taken) {
    begin_public_call();
    handles::MemoryPoolHandle pool = open_pool(self);
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

std::string memory_pool_repr(nb::handle self) {
    const MemoryPool& resource = self_of<MemoryPool>(self);
    if (!resource.handle) return std::string("<") + class_name(self) + " closed>";
    std::string text =
        std::string("<") + class_name(self) + " " + handles::describe_pool(resource.handle);
    if (resource.place.kind == PoolKind::Device)
        text += " device=" + std::to_string(resource.place.id);
    return text + (resource.imported ? " mapped>" : ">");
}

} // namespace

const handles::MemoryPoolHandle& open_pool(nb::handle self) {
    const MemoryPool& resource = self_of<MemoryPool>(self);
    if (!resource.handle)
        throw std::runtime_error(std::string(class_name(self)) + " has been closed");
    return resource.handle;
}

void bind_memory_pool(nb::module_& module) {
    nb::class_<MemoryPool, MemoryResource>(module, "MemoryPool", nb::type_slots(memory_pool_slots),
                                           "A memory resource that is a pool.")
        .def("allocate", memory_pool_allocate, nb::arg("size").none(), nb::kw_only(),
             nb::arg("stream").none(),
             nb::sig("def allocate(self, size: int, *, stream: object) -> Buffer"),
             "`size` bytes of the pool in the order of `stream`, on which they are freed as "
             "well.\n\n"
             "Raises RuntimeError when the resource is closed or the stream captures, TypeError "
             "for a pool of\n"
             "another process, CUDAError, which is a MemoryError too when memory is exhausted.")
        .def("deallocate", memory_pool_deallocate, nb::arg("ptr").none(), nb::arg("size").none(),
             nb::kw_only(), nb::arg("stream").none(),
             nb::sig("def deallocate(self, ptr: int, size: int, *, stream: object) -> None"),
             "Frees memory of the pool that no Buffer owns, in the order of `stream`; a closed "
             "resource still does.\n"
             "Raises ValueError for memory that a Buffer owns, CUDAError for what is no memory.")
        .def(
            "close", [](MemoryPool& self) { self.handle.reset(); },
            "Refuses use from now on. A pool of our own ends with its last Buffer and view.")
        .def_prop_ro("is_closed", [](const MemoryPool& self) { return !self.handle; })
        .def_prop_ro("handle", memory_pool_raw, "The CUmemoryPool as an int; 0 once closed.")
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
        .def("__repr__", memory_pool_repr);
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
}

} // namespace cudamod::python
