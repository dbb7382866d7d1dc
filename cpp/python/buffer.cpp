#include "python/buffer.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "python/dlpack.h"
#include "python/gil_released.h"
#include "python/integer_argument.h"
#include "python/public_call.h"
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
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Buffer>(self)->owner.ptr());
    return 0;
}

int clear(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Buffer>(self)->owner = nb::none();
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

nb::object copy_to(nb::object self, nb::object destination, nb::object stream) {
    begin_public_call();
    const Buffer& source = open(*instance<Buffer>(self.ptr()));
    handles::StreamHandle order = stream_of(stream);
    if (destination.is_none()) destination = new_buffer(order, source.size);
    if (const Buffer* target = instance<Buffer>(destination.ptr())) {
        copy_device(*target, source, order);
        return destination;
    }
    HostBytes host(destination, true);
    check_sizes(host.size(), source.size);
    in_order(order, "cuMemcpyDtoHAsync", source,
             [to = host.data(), from = source.address, size = source.size](CUstream s) {
                 return driver::table.cuMemcpyDtoHAsync(to, from, size, s);
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
    in_order(order, "cuMemcpyHtoDAsync", self,
             [to = self.address, from = host.data(), size = self.size](CUstream s) {
                 return driver::table.cuMemcpyHtoDAsync(to, from, size, s);
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

void close(Buffer& self, nb::object stream) {
    if (self.closed) return;
    if (!stream.is_none()) {
        handles::StreamHandle order = stream_of(stream);
        if (self.memory)
            handles::box_of<handles::DeviceMemoryBox>(self.memory).free_on = std::move(order);
    }
    self.closed = true;
    self.address = 0;
    self.memory.reset();
    self.owner = nb::none();
}

nb::object from_handle(nb::handle type, nb::handle address, nb::handle size_object,
                       nb::object owner) {
    begin_public_call();
    std::uint64_t value = raw_argument(address, "Buffer.from_handle: ptr");
    std::size_t size = size_argument(size_object, "Buffer.from_handle: size");
    if (!value && size)
        throw nb::value_error(
            ("Buffer.from_handle: there are no " + std::to_string(size) + " bytes at address 0")
                .c_str());
    return buffer_around(type, value, size, std::move(owner));
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
        CUstream order = *handles::box_of<handles::DeviceMemoryBox>(self.memory).free_on;
        interface["stream"] = reinterpret_cast<std::uintptr_t>(order);
    }
    return interface;
}

std::string repr(const Buffer& self) {
    if (self.closed) return "<Buffer closed>";
    char text[96];
    std::snprintf(text, sizeof text, "<Buffer address=0x%llx size=%zu device=%d>",
                  static_cast<unsigned long long>(self.address), self.size, self.device);
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

nb::object buffer_around(nb::handle type, std::uint64_t address, std::size_t size,
                         nb::object owner) {
    unsigned memory_type = 0, managed = 0;
    int device = -1;
    if (address) {
        driver::check(driver::table.cuPointerGetAttribute(
                          &memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
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
    }
    return make_as<Buffer>(
        type, Buffer{address, size, device, managed != 0, false, {}, std::move(owner)});
}

nb::object new_buffer(const handles::StreamHandle& stream, std::size_t size) {
    int device = handles::box_of<handles::StreamBox>(stream).device;
    // The driver refuses 0 bytes; an empty array's address is null.
    if (size == 0) return make<Buffer>(Buffer{0, 0, device, false, false, {}, nb::none()});
    handles::DeviceMemoryHandle memory = handles::allocate(stream, size);
    CUdeviceptr address = *memory;
    return make<Buffer>(Buffer{address, size, device, false, false, std::move(memory), nb::none()});
}

void bind_buffer(nb::module_& module) {
    auto type =
        nb::class_<Buffer>(module, "Buffer", nb::type_slots(slots), nb::is_weak_referenceable(),
                           "A range of memory that kernels can use. Freed in stream order with its "
                           "last reference.")
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
            .def_prop_ro(
                "device_id", [](const Buffer& self) { return self.device; },
                "The device that the memory lies on; -1 for pinned and managed memory.")
            .def_prop_ro("is_device_accessible", [](const Buffer&) { return true; })
            .def_prop_ro("is_host_accessible",
                         [](const Buffer& self) { return self.host_accessible(); })
            .def_prop_ro("is_managed", [](const Buffer& self) { return self.managed; })
            .def_prop_ro(
                "owner", [](const Buffer& self) { return self.owner; },
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
            .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"))
            .def("__len__", [](const Buffer& self) { return self.size; })
            .def("__repr__", repr);
    def_class_method(
        type, "from_handle", from_handle, nb::arg("cls"), nb::arg("ptr").none(),
        nb::arg("size").none(), nb::kw_only(), nb::arg("owner") = nb::none(),
        nb::sig("def from_handle(cls, ptr: int, size: int, *, owner: object = None) -> Self"),
        "Wraps memory that somebody else owns; `owner` is kept alive. Raises CUDAError when the\n"
        "driver does not know the address.");
    Buffer::python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    prove_payload<Buffer>(Buffer{0, 0, 0, false, false, {}, nb::none()});
}

} // namespace cudamod::python
