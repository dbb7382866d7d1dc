#include "python/buffer.h"
#include "python/argument.h"

#include "python/bindings.h"

#include "python/buffer_copy.h"
#include "python/buffer_ipc.h"
#include "python/buffer_origin.h"
#include "python/dlpack.h"
#include "python/memory_owner.h"
#include "python/stream.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace cudamod::python {

PyTypeObject* Buffer::python_type = nullptr;

namespace {

constexpr const char* kBufferOrigin = "Use Device.allocate or Buffer.from_handle.";
int buffer_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    auto* buffer = nb::inst_ptr<Buffer>(self);
    Py_VISIT(buffer->owner.ptr());
    Py_VISIT(buffer->resource.ptr());
    Py_VISIT(buffer->descriptor.ptr());
    return 0;
}

int buffer_clear(PyObject* self) {
    if (!nb::inst_ready(self)) return 0;
    auto* buffer = nb::inst_ptr<Buffer>(self);
    nb::object gone[] = {std::exchange(buffer->owner, nb::none()),
                         std::exchange(buffer->resource, nb::none()),
                         std::exchange(buffer->descriptor, nb::none())};
    return 0;
}

PyType_Slot buffer_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(buffer_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(buffer_clear)},
                              {Py_tp_new, reinterpret_cast<void*>(refuse_new<kBufferOrigin>)},
                              {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                              {0, nullptr}};

void set_deallocation_stream(Buffer& self, nb::object stream) {
    open(self);
    nb::object kept = stream_argument(stream);
    handles::StreamHandle order = open_handle(*instance<Stream>(kept.ptr()));
    if (self.memory) {
        const auto& memory = handles::box_of<handles::DeviceMemoryBox>(self.memory);
        std::swap(memory.free_on, order);
    } else if (auto* owner = instance<MemoryOwner>(self.owner.ptr())) {
        std::swap(owner->stream, kept);
    }
}

void buffer_close(Buffer& self, nb::object stream) {
    if (self.closed) return;
    if (!stream.is_none()) set_deallocation_stream(self, std::move(stream));
    self.closed = true;
    closings.fetch_add(1, std::memory_order_relaxed);
    self.address = 0;
    handles::DeviceMemoryHandle memory = std::exchange(self.memory, {});
    nb::object gone[] = {std::exchange(self.owner, nb::none()),
                         std::exchange(self.resource, nb::none()),
                         std::exchange(self.descriptor, nb::none())};
}

int device_id(const Buffer& self) {
    if (self.device >= 0 || !self.resource.is_valid() || self.resource.is_none())
        return self.device < 0 ? -1 : self.device;
    return nb::cast<int>(self.resource.attr("device_id"));
}

nb::dict cuda_array_interface(const Buffer& self) {
    open(self);
    nb::dict interface;
    interface["shape"] = nb::make_tuple(self.size);
    interface["typestr"] = "|u1";
    interface["data"] = nb::make_tuple(self.address, false);
    interface["strides"] = nb::none();
    interface["version"] = 3;
    interface["stream"] = nb::none();
    if (self.memory) {
        if (const auto& order = handles::box_of<handles::DeviceMemoryBox>(self.memory).free_on)
            interface["stream"] = reinterpret_cast<std::uintptr_t>(*order);
    }
    return interface;
}

std::string buffer_repr(const Buffer& self) {
    if (self.closed) return "<Buffer closed>";
    char text[96];
    std::snprintf(text, sizeof text, "<Buffer address=0x%llx size=%zu device=%d>",
                  static_cast<unsigned long long>(self.address), self.size, device_id(self));
    return text;
}

} // namespace

const Buffer& open(const Buffer& buffer) {
    if (buffer.closed) throw std::runtime_error("Buffer has been closed");
    return buffer;
}

void release_owner(nb::object owner) noexcept {
    thread_local std::vector<PyObject*> waiting;
    thread_local bool releasing = false;
    if (!owner.is_valid() || owner.is_none()) return;
    waiting.push_back(owner.release().ptr());
    if (releasing) return;
    releasing = true;
    while (!waiting.empty()) {
        PyObject* next = waiting.back();
        waiting.pop_back();
        Py_DECREF(next);
    }
    releasing = false;
}

nb::object new_buffer(const handles::StreamHandle& stream, std::size_t size) {
    int device = handles::box_of<handles::StreamBox>(stream).device;
    handles::DeviceMemoryHandle memory;
    if (size) {
        handles::MemoryPoolHandle pool = handles::device_pool(device);
        memory =
            pool ? handles::allocate(pool, stream, size) : handles::allocate_at_once(stream, size);
    }
    return buffer_of(std::move(memory), device, false, nb::none());
}

nb::object buffer_of(handles::DeviceMemoryHandle memory, int device, bool managed,
                     nb::object resource, nb::handle type) {
    // The driver refuses 0 bytes; an empty array's address is null.
    CUdeviceptr address = memory ? *memory : 0;
    std::size_t size = memory ? handles::box_of<handles::DeviceMemoryBox>(memory).size : 0;
    return make_as<Buffer>(type, Buffer{address, size, device, managed, false, std::move(memory),
                                        nb::none(), std::move(resource)});
}

void bind_buffer(nb::module_& module) {
    auto type =
        nb::class_<Buffer>(module, "Buffer", nb::type_slots(buffer_slots),
                           nb::is_weak_referenceable(),
                           "A range of memory that kernels can use. Freed in stream order with its "
                           "last reference.")
            .def_static(
                "from_ipc_descriptor", buffer_from_descriptor, nb::arg("mr").none(),
                nb::arg("ipc_descriptor").none(), nb::kw_only(), nb::arg("stream").none(),
                nb::sig("def from_ipc_descriptor(mr: MemoryPool, ipc_descriptor: Any, *, stream: "
                        "object) -> Buffer"),
                "Memory that another process exported. `mr` was imported from the resource that it "
                "belongs to; it is\n"
                "freed here in the order of `stream`, and must be before its exporter frees it.")
            .def_prop_ro("ipc_descriptor", ipc_descriptor,
                         nb::sig("def ipc_descriptor(self) -> Any"),
                         "What describes the memory to another process. Raises RuntimeError unless "
                         "the resource is\n"
                         "IPC-enabled.")
            .def("set_deallocation_stream", set_deallocation_stream, nb::arg("stream").none(),
                 nb::sig("def set_deallocation_stream(self, stream: object) -> None"),
                 "Lets the memory be freed in the order of another stream.")
            .def("close", buffer_close, nb::arg("stream") = nb::none(),
                 nb::sig("def close(self, stream: object = None) -> None"),
                 "Frees the memory in the order of `stream`, or of the stream that it was "
                 "allocated on.")
            .def_prop_ro("is_closed", [](const Buffer& self) { return self.closed; })
            .def_prop_ro(
                "handle", [](const Buffer& self) { return self.address; },
                "The address; 0 once closed.")
            .def_prop_ro(
                "size", [](const Buffer& self) { return self.size; }, "Bytes.")
            .def_prop_ro("device_id", device_id,
                         "The device that the memory lies on; -1 for pinned and managed memory.")
            .def_prop_ro("is_device_accessible",
                         [](const Buffer& self) { return self.device != kNoDevice; })
            .def_prop_ro("is_mapped", is_mapped,
                         "Whether the memory was exported by another process.")
            .def_prop_ro("memory_resource", buffer_resource,
                         nb::sig("def memory_resource(self) -> MemoryResource | None"),
                         "Where the memory came from; None for somebody else's, and once closed.")
            .def_prop_ro("is_host_accessible",
                         [](const Buffer& self) { return self.host_accessible(); })
            .def_prop_ro("is_managed", [](const Buffer& self) { return self.managed; })
            .def_prop_ro(
                "owner",
                [](const Buffer& self) {
                    return instance<MemoryOwner>(self.owner.ptr()) ? nb::none() : self.owner;
                },
                nb::sig("def owner(self) -> object"))
            .def("copy_to", copy_buffer_to, nb::arg("dst") = nb::none(), nb::kw_only(),
                 nb::arg("stream").none(),
                 nb::sig("def copy_to(self, dst: object = None, *, stream: object) -> Any"),
                 "Copies to another Buffer, to a writable host object (buffer protocol), or to a "
                 "new Buffer; answers\n"
                 "the destination. Host memory that is not pinned is filled when the call "
                 "returns.\n\n"
                 "Raises ValueError when the sizes differ.")
            .def("copy_from", copy_buffer_from, nb::arg("src").none(), nb::kw_only(),
                 nb::arg("stream").none(),
                 nb::sig("def copy_from(self, src: object, *, stream: object) -> None"),
                 "Copies from another Buffer or from a host object (buffer protocol). Memory that "
                 "is not pinned may\n"
                 "change when the call returns. Raises ValueError when the sizes differ.")
            .def("fill", fill_buffer, nb::arg("value").none(), nb::kw_only(),
                 nb::arg("stream").none(),
                 nb::sig("def fill(self, value: int | bytes, *, stream: object) -> None"),
                 "Fills with a byte (0 .. 255) or with a pattern of 1, 2 or 4 bytes.")
            .def_prop_ro("__cuda_array_interface__", cuda_array_interface,
                         nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"))
            .def(
                "__dlpack__",
                [](const Buffer& self, nb::object stream, nb::object max_version, nb::object device,
                   nb::object copy) {
                    return export_dlpack(open(self), stream, max_version, device, copy);
                },
                nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
                nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
                nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: "
                        "tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, "
                        "copy: bool | None = None) -> Any"))
            .def("__dlpack_device__", [](const Buffer& self) { return dlpack_device(open(self)); })
            .def(
                "__enter__",
                [](Buffer& self) {
                    open(self);
                    return nb::find(self);
                },
                nb::sig("def __enter__(self) -> Buffer"))
            .def(
                "__exit__", [](Buffer& self, nb::args) { buffer_close(self, nb::none()); },
                nb::sig("def __exit__(self, *args: object) -> None"))
            .def("__reduce__", reduce_buffer, nb::sig("def __reduce__(self) -> tuple[Any, ...]"))
            .def("__len__", [](const Buffer& self) { return self.size; })
            .def("__repr__", buffer_repr);
    def_class_method(
        type, "from_handle", buffer_from_handle, nb::arg("cls"), nb::arg("ptr").none(),
        nb::arg("size").none(), nb::arg("mr") = nb::none(), nb::arg("owner") = nb::none(),
        nb::kw_only(), nb::arg("stream") = nb::none(),
        nb::sig("def from_handle(cls, ptr: int, size: int, mr: MemoryResource | None = None, "
                "owner: object = None, *, stream: object = None) -> Self"),
        "Wraps memory: of somebody else, with `owner` kept alive, or of the resource `mr`, "
        "whose `deallocate`\n"
        "gets it in the end, in the order of `stream` (the current device's default "
        "stream).\n\n"
        "Raises CUDAError when the driver does not know the address, ValueError when it is "
        "no memory of a\n"
        "pool `mr`.");
    Buffer::python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    prove_payload<Buffer>(Buffer{0, 0, 0, false, false, {}, nb::none(), nb::none()});
}

} // namespace cudamod::python
