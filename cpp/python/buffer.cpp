#include "python/buffer.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/registry.h"
#include "python/device.h"
#include "python/dlpack.h"
#include "python/gil_released.h"
#include "python/integer_argument.h"
#include "python/memory_owner.h"
#include "python/memory_resource.h"
#include "python/public_call.h"
#include "python/python_half.h"
#include "python/stream.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace cudamod::python {

PyTypeObject* Buffer::python_type = nullptr;

namespace {

constexpr const char* kOrigin = "Use Device.allocate or Buffer.from_handle.";
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    auto* buffer = nb::inst_ptr<Buffer>(self);
    Py_VISIT(buffer->owner.ptr());
    Py_VISIT(buffer->resource.ptr());
    Py_VISIT(buffer->descriptor.ptr());
    return 0;
}

int clear(PyObject* self) {
    if (!nb::inst_ready(self)) return 0;
    auto* buffer = nb::inst_ptr<Buffer>(self);
    nb::object gone[] = {std::exchange(buffer->owner, nb::none()),
                         std::exchange(buffer->resource, nb::none()),
                         std::exchange(buffer->descriptor, nb::none())};
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_new, reinterpret_cast<void*>(refuse_new<kOrigin>)},
                       {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                       {0, nullptr}};

std::string subject(const Buffer& buffer) {
    return handles::describe("buffer", buffer.address) + " of " + std::to_string(buffer.size) +
           " bytes";
}

const Buffer& open(const Buffer& buffer) {
    if (buffer.closed) throw std::runtime_error("Buffer has been closed");
    return buffer;
}

/// Holds an object's bytes for the length of a copy.
class HostBytes {
  public:
    HostBytes(nb::handle object, bool writable) {
        int flags = PyBUF_ANY_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) < 0) throw nb::python_error();
    }
    ~HostBytes() { PyBuffer_Release(&view_); }
    HostBytes(const HostBytes&) = delete;
    HostBytes& operator=(const HostBytes&) = delete;
    void* data() const { return view_.buf; }
    std::size_t size() const { return static_cast<std::size_t>(view_.len); }

  private:
    Py_buffer view_;
};

/// What a buffer's memory lives by, for a call during which another thread may close the buffer.
struct Kept {
    handles::DeviceMemoryHandle memory;
    nb::object owner;

    explicit Kept(const Buffer& buffer) : memory(buffer.memory), owner(buffer.owner) {}
};

handles::StreamHandle stream_of(nb::handle stream) {
    return open_handle(*instance<Stream>(stream_argument(stream).ptr()));
}

/// One call in the order of a stream, in its context, with the interpreter lock released. None for
/// 0 bytes, which the driver refuses.
template <class Call>
void in_order(const handles::StreamHandle& stream, const char* name, const Buffer& buffer,
              Call&& call) {
    if (buffer.size == 0) return;
    Kept kept(buffer);
    handles::ContextScope scope(handles::box_of<handles::StreamBox>(stream).context);
    CUresult status;
    {
        GilReleased unlocked;
        status = call(*stream);
    }
    driver::check(status, name, [&] { return subject(buffer); });
}

void check_sizes(std::size_t destination, std::size_t source) {
    if (destination == source) return;
    PyErr_Format(PyExc_ValueError,
                 "buffer length mismatch between source (%zu bytes) and destination (%zu bytes)",
                 source, destination);
    throw nb::python_error();
}

void copy_device(const Buffer& destination, const Buffer& source,
                 const handles::StreamHandle& stream) {
    check_sizes(open(destination).size, open(source).size);
    Kept kept(source);
    in_order(stream, "cuMemcpyAsync", destination,
             [to = destination.address, from = source.address, size = source.size](CUstream s) {
                 return driver::table.cuMemcpyAsync(to, from, size, s);
             });
}

/// A new Buffer like this one: from its resource, where that can give memory for work in the
/// stream, else from the stream's device.
nb::object another(const Buffer& self, const handles::StreamHandle& order, nb::handle stream) {
    if (self.resource.is_valid() && !self.resource.is_none()) {
        const MemoryPool* pool = instance<MemoryPool>(self.resource.ptr());
        int device = handles::box_of<handles::StreamBox>(order).device;
        if (!pool) return self.resource.attr("allocate")(self.size, nb::arg("stream") = stream);
        if (pool->handle && !pool->imported && self.reachable_from(device))
            return allocate_from(self.resource, nb::int_(self.size), stream);
    }
    return new_buffer(order, self.size);
}

nb::object copy_to(nb::object self, nb::object destination, nb::object stream) {
    begin_public_call();
    const Buffer& source = open(self_of<Buffer>(self));
    handles::StreamHandle order = stream_of(stream);
    if (destination.is_none()) destination = another(source, order, stream);
    if (const Buffer* target = instance<Buffer>(destination.ptr())) {
        copy_device(*target, source, order);
        return destination;
    }
    HostBytes host(destination, true);
    check_sizes(host.size(), source.size);
    bool on_device = source.device != kNoDevice;
    in_order(order, on_device ? "cuMemcpyDtoHAsync" : "cuMemcpyAsync", source,
             [to = host.data(), from = source.address, size = source.size, on_device](CUstream s) {
                 return on_device ? driver::table.cuMemcpyDtoHAsync(to, from, size, s)
                                  : driver::table.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                                                from, size, s);
             });
    return destination;
}

void copy_from(const Buffer& self, nb::object source, nb::object stream) {
    begin_public_call();
    open(self);
    handles::StreamHandle order = stream_of(stream);
    if (const Buffer* other = instance<Buffer>(source.ptr())) {
        copy_device(self, *other, order);
        return;
    }
    HostBytes host(source, false);
    check_sizes(self.size, host.size());
    bool on_device = self.device != kNoDevice;
    in_order(order, on_device ? "cuMemcpyHtoDAsync" : "cuMemcpyAsync", self,
             [to = self.address, from = host.data(), size = self.size, on_device](CUstream s) {
                 return on_device ? driver::table.cuMemcpyHtoDAsync(to, from, size, s)
                                  : driver::table.cuMemcpyAsync(
                                        to, reinterpret_cast<CUdeviceptr>(from), size, s);
             });
}

void fill(const Buffer& self, nb::object value, nb::object stream) {
    begin_public_call();
    open(self);
    handles::StreamHandle order = stream_of(stream);
    std::uint32_t pattern = 0;
    std::size_t width = 1;
    if (PyLong_Check(value.ptr())) {
        long byte = PyLong_AsLong(value.ptr());
        if ((byte == -1 && PyErr_Occurred()) || byte < 0 || byte > 255) {
            PyErr_Clear();
            PyErr_Format(PyExc_OverflowError,
                         "Buffer.fill: value must be in 0 .. 255, or 1, 2 or 4 bytes (got %R)",
                         value.ptr());
            throw nb::python_error();
        }
        pattern = static_cast<std::uint32_t>(byte);
    } else {
        HostBytes bytes(value, false);
        width = bytes.size();
        if (width != 1 && width != 2 && width != 4)
            throw nb::value_error(
                ("Buffer.fill: value must be 1, 2 or 4 bytes, not " + std::to_string(width))
                    .c_str());
        std::memcpy(&pattern, bytes.data(), width);
    }
    if (self.size % width)
        throw nb::value_error(("Buffer.fill: " + std::to_string(self.size) +
                               " bytes are no multiple of " + std::to_string(width))
                                  .c_str());
    const char* call = width == 1   ? "cuMemsetD8Async"
                       : width == 2 ? "cuMemsetD16Async"
                                    : "cuMemsetD32Async";
    in_order(order, call, self, [=, to = self.address, count = self.size / width](CUstream s) {
        if (width == 1)
            return driver::table.cuMemsetD8Async(to, static_cast<unsigned char>(pattern), count, s);
        if (width == 2)
            return driver::table.cuMemsetD16Async(to, static_cast<unsigned short>(pattern), count,
                                                  s);
        return driver::table.cuMemsetD32Async(to, pattern, count, s);
    });
}

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

void close(Buffer& self, nb::object stream) {
    if (self.closed) return;
    if (!stream.is_none()) set_deallocation_stream(self, std::move(stream));
    self.closed = true;
    self.address = 0;
    handles::DeviceMemoryHandle memory = std::exchange(self.memory, {});
    nb::object gone[] = {std::exchange(self.owner, nb::none()),
                         std::exchange(self.resource, nb::none()),
                         std::exchange(self.descriptor, nb::none())};
}

/// What a Buffer's memory is, as the driver knows it.
struct Described {
    int device = kEveryDevice;
    bool managed = false;
};

Described describe_address(std::uint64_t address) {
    unsigned memory_type = 0, managed = 0;
    int device = kEveryDevice;
    driver::check(driver::table.cuPointerGetAttribute(&memory_type,
                                                      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
                  "cuPointerGetAttribute", [&] {
                      return handles::describe("address", address) +
                             " is neither device, pinned nor managed memory";
                  });
    driver::check(
        driver::table.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
        "cuPointerGetAttribute");
    if (memory_type == CU_MEMORYTYPE_DEVICE && !managed)
        driver::check(driver::table.cuPointerGetAttribute(
                          &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address),
                      "cuPointerGetAttribute");
    return {device, managed != 0};
}

/// The stream of a Buffer that was made without one: the default stream of the current device, or
/// else of the device that the memory lies on; none where there is neither.
nb::object stream_or_default(nb::object stream, int device) {
    if (!stream.is_none()) return stream_argument(stream);
    int current = handles::current_device();
    if (current < 0) current = device;
    if (current < 0) return nb::none();
    return make<Stream>(handles::default_stream(current, false));
}

/// Takes over memory that was allocated from a pool by a call of the driver.
nb::object adopt(std::uint64_t address, std::size_t size, nb::object resource, nb::object stream) {
    const MemoryPool& pool = *instance<MemoryPool>(resource.ptr());
    if (!pool.handle) throw std::runtime_error("the memory resource has been closed");
    handles::MemoryPoolHandle kept = pool.handle;
    if (pool.imported)
        throw nb::type_error("Buffer.from_handle: memory of another process's pool comes from "
                             "Buffer.from_ipc_descriptor");
    CUmemoryPool found = nullptr;
    CUdeviceptr begin = 0;
    driver::check(
        driver::table.cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address),
        "cuPointerGetAttribute", [&] { return handles::describe("address", address); });
    driver::check(
        driver::table.cuPointerGetAttribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address),
        "cuPointerGetAttribute", [&] { return handles::describe("address", address); });
    if (found != *kept || begin != address)
        throw nb::value_error(("Buffer.from_handle: " + handles::describe("address", address) +
                               " is not where an allocation of " + handles::describe_pool(kept) +
                               " begins")
                                  .c_str());
    if (handles::registry<handles::DeviceMemoryBox>().find(address))
        throw nb::value_error(("Buffer.from_handle: " + handles::describe("memory", address) +
                               " belongs to another Buffer")
                                  .c_str());
    nb::object order = stream_or_default(
        std::move(stream), pool.place.kind == handles::PoolKind::Device ? pool.place.id : -1);
    if (order.is_none())
        throw std::runtime_error("Buffer.from_handle: no context is current; pass a stream");
    handles::StreamHandle on = open_handle(*instance<Stream>(order.ptr()));
    return buffer_of(handles::adopt(kept, on, address, size),
                     handles::box_of<handles::MemoryPoolBox>(kept).device(),
                     pool.place.kind == handles::PoolKind::Managed, std::move(resource));
}

/// Memory of a resource written in Python, which says what it is.
nb::object with_resource(std::uint64_t address, std::size_t size, nb::object resource,
                         nb::object stream) {
    int device = kNoDevice;
    if (nb::cast<bool>(nb::bool_(resource.attr("is_device_accessible"))))
        device = nb::cast<bool>(nb::bool_(resource.attr("is_host_accessible")))
                     ? kEveryDevice
                     : ordinal_of(resource.attr("device_id"));
    bool managed = nb::cast<bool>(nb::bool_(resource.attr("is_managed")));
    nb::object order = stream_or_default(std::move(stream), device);
    nb::object owner = make<MemoryOwner>(resource, std::move(order), address, size);
    return make<Buffer>(
        Buffer{address, size, device, managed, false, {}, std::move(owner), std::move(resource)});
}

nb::object from_handle(nb::handle address, nb::handle size_object, nb::object resource,
                       nb::object owner, nb::object stream) {
    begin_public_call();
    std::uint64_t value = raw_argument(address, "Buffer.from_handle: ptr");
    std::size_t size = size_argument(size_object, "Buffer.from_handle: size");
    if (!resource.is_none() && !owner.is_none())
        throw nb::value_error(
            "Buffer.from_handle: owner and memory resource cannot be both specified together");
    if (resource.is_none() && !stream.is_none())
        throw nb::value_error("Buffer.from_handle: stream requires a memory resource");
    if (!resource.is_none() && !nb::isinstance<MemoryResource>(resource)) {
        PyErr_Format(PyExc_TypeError, "Buffer.from_handle: mr must be a MemoryResource, not %s",
                     Py_TYPE(resource.ptr())->tp_name);
        throw nb::python_error();
    }
    if (!value && size)
        throw nb::value_error(
            ("Buffer.from_handle: there are no " + std::to_string(size) + " bytes at address 0")
                .c_str());
    if (!resource.is_none()) {
        if (!nb::isinstance<MemoryPool>(resource))
            return with_resource(value, size, std::move(resource), std::move(stream));
        if (value) return adopt(value, size, std::move(resource), std::move(stream));
    }
    Described found;
    if (value) found = describe_address(value);
    return make<Buffer>(Buffer{value,
                               size,
                               found.device,
                               found.managed,
                               false,
                               {},
                               std::move(owner),
                               std::move(resource)});
}

bool is_mapped(const Buffer& self) {
    if (!self.memory) return false;
    const auto& pool = handles::box_of<handles::DeviceMemoryBox>(self.memory).pool;
    return pool && handles::box_of<handles::MemoryPoolBox>(pool).imported;
}

nb::object memory_resource(const Buffer& self) {
    if (self.resource.is_valid() && !self.resource.is_none()) return self.resource;
    bool ours = self.memory || (self.size == 0 && !self.closed && self.device >= 0);
    return ours ? standard_resource(self.device) : nb::none();
}

bool is_exportable(const Buffer& self) {
    if (!self.memory) return false;
    const auto& pool = handles::box_of<handles::DeviceMemoryBox>(self.memory).pool;
    return pool && handles::box_of<handles::MemoryPoolBox>(pool).exportable;
}

nb::object ipc_descriptor(const Buffer& self) {
    begin_public_call();
    open(self);
    if (self.descriptor.is_valid() && !self.descriptor.is_none()) return self.descriptor;
    if (!is_exportable(self)) throw std::runtime_error("Memory resource is not IPC-enabled");
    handles::DeviceMemoryHandle memory = self.memory;
    handles::MemoryExport data = handles::export_memory(memory);
    return python_half("cudamod.memory_ipc",
                       "IPCBufferDescriptor")(nb::bytes(data.data(), data.size()), self.size);
}

nb::object from_ipc_descriptor(nb::object resource, nb::object descriptor, nb::object stream) {
    begin_public_call();
    const MemoryPool* pool = instance<MemoryPool>(resource.ptr());
    if (!pool) {
        PyErr_Format(PyExc_TypeError,
                     "Buffer.from_ipc_descriptor: mr must be a DeviceMemoryResource or a "
                     "PinnedMemoryResource, not %s",
                     Py_TYPE(resource.ptr())->tp_name);
        throw nb::python_error();
    }
    if (!nb::isinstance(descriptor, python_half("cudamod.memory_ipc", "IPCBufferDescriptor"))) {
        PyErr_Format(PyExc_TypeError,
                     "Buffer.from_ipc_descriptor: ipc_descriptor must be an IPCBufferDescriptor, "
                     "not %s",
                     Py_TYPE(descriptor.ptr())->tp_name);
        throw nb::python_error();
    }
    if (!pool->handle) throw std::runtime_error("the memory resource has been closed");
    if (!pool->imported)
        throw std::runtime_error("Buffer.from_ipc_descriptor: the memory resource was not imported "
                                 "from the process that exported the buffer");
    handles::MemoryPoolHandle from = pool->handle;
    handles::StreamHandle order = stream_of(stream);
    nb::object payload = descriptor.attr("_payload");
    std::size_t size = size_argument(descriptor.attr("size"), "IPCBufferDescriptor.size");
    handles::MemoryExport data;
    char* bytes = nullptr;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(payload.ptr(), &bytes, &length) < 0) throw nb::python_error();
    if (static_cast<std::size_t>(length) != data.size())
        throw nb::value_error("Buffer.from_ipc_descriptor: the descriptor is damaged");
    std::memcpy(data.data(), bytes, data.size());
    handles::DeviceMemoryHandle memory = handles::import_memory(from, order, data, size);
    // The sender wrote the size; the driver knows the truth.
    std::size_t there = 0;
    driver::check(
        driver::table.cuPointerGetAttribute(&there, CU_POINTER_ATTRIBUTE_RANGE_SIZE, *memory),
        "cuPointerGetAttribute", [&] { return handles::describe("imported memory", *memory); });
    if (size > there)
        throw nb::value_error(("Buffer.from_ipc_descriptor: the descriptor says " +
                               std::to_string(size) + " bytes, the memory has " +
                               std::to_string(there))
                                  .c_str());
    CUdeviceptr address = *memory;
    return make<Buffer>(
        Buffer{address, size, handles::box_of<handles::MemoryPoolBox>(from).device(), false, false,
               std::move(memory), nb::none(), std::move(resource), std::move(descriptor)});
}

nb::object reduce(nb::handle self) {
    const Buffer& buffer = self_of<Buffer>(self);
    if (buffer.closed || !(is_exportable(buffer) || is_mapped(buffer)))
        return refuse_pickling(self);
    return nb::make_tuple(python_half("cudamod.memory_ipc", "rebuild_buffer"),
                          nb::make_tuple(memory_resource(buffer), ipc_descriptor(buffer)));
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

std::string repr(const Buffer& self) {
    if (self.closed) return "<Buffer closed>";
    char text[96];
    std::snprintf(text, sizeof text, "<Buffer address=0x%llx size=%zu device=%d>",
                  static_cast<unsigned long long>(self.address), self.size, device_id(self));
    return text;
}

} // namespace

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
                     nb::object resource) {
    // The driver refuses 0 bytes; an empty array's address is null.
    CUdeviceptr address = memory ? *memory : 0;
    std::size_t size = memory ? handles::box_of<handles::DeviceMemoryBox>(memory).size : 0;
    return make<Buffer>(Buffer{address, size, device, managed, false, std::move(memory), nb::none(),
                               std::move(resource)});
}

void bind_buffer(nb::module_& module) {
    auto type =
        nb::class_<Buffer>(module, "Buffer", nb::type_slots(slots), nb::is_weak_referenceable(),
                           "A range of memory that kernels can use. Freed in stream order with its "
                           "last reference.")
            .def_static(
                "from_handle", from_handle, nb::arg("ptr").none(), nb::arg("size").none(),
                nb::arg("mr") = nb::none(), nb::arg("owner") = nb::none(), nb::kw_only(),
                nb::arg("stream") = nb::none(),
                nb::sig("def from_handle(ptr: int, size: int, mr: MemoryResource | None = None, "
                        "owner: object = None, *, stream: object = None) -> Buffer"),
                "Wraps memory: of somebody else, with `owner` kept alive, or of the resource `mr`, "
                "whose `deallocate`\n"
                "gets it in the end, in the order of `stream` (the current device's default "
                "stream).\n\n"
                "Raises CUDAError when the driver does not know the address, ValueError when it is "
                "no memory of a\n"
                "pool `mr`.")
            .def_static(
                "from_ipc_descriptor", from_ipc_descriptor, nb::arg("mr").none(),
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
            .def("close", close, nb::arg("stream") = nb::none(),
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
            .def_prop_ro("memory_resource", memory_resource,
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
            .def("copy_to", copy_to, nb::arg("dst") = nb::none(), nb::kw_only(),
                 nb::arg("stream").none(),
                 nb::sig("def copy_to(self, dst: object = None, *, stream: object) -> Any"),
                 "Copies to another Buffer, to a writable host object (buffer protocol), or to a "
                 "new Buffer; answers\n"
                 "the destination. Host memory that is not pinned is filled when the call "
                 "returns.\n\n"
                 "Raises ValueError when the sizes differ.")
            .def("copy_from", copy_from, nb::arg("src").none(), nb::kw_only(),
                 nb::arg("stream").none(),
                 nb::sig("def copy_from(self, src: object, *, stream: object) -> None"),
                 "Copies from another Buffer or from a host object (buffer protocol). Memory that "
                 "is not pinned may\n"
                 "change when the call returns. Raises ValueError when the sizes differ.")
            .def("fill", fill, nb::arg("value").none(), nb::kw_only(), nb::arg("stream").none(),
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
                "__exit__", [](Buffer& self, nb::args) { close(self, nb::none()); },
                nb::sig("def __exit__(self, *args: object) -> None"))
            .def("__reduce__", reduce, nb::sig("def __reduce__(self) -> tuple[Any, ...]"))
            .def("__len__", [](const Buffer& self) { return self.size; })
            .def("__repr__", repr);
    Buffer::python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    prove_payload<Buffer>(Buffer{0, 0, 0, false, false, {}, nb::none(), nb::none()});
}

} // namespace cudamod::python
