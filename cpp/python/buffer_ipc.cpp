#include "python/buffer_ipc.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/destruction.h"
#include "handles/memory_import.h"
#include "python/buffer_origin.h"
#include "python/integer_argument.h"
#include "python/memory_pool.h"
#include "python/public_call.h"
#include "python/python_half.h"
#include "python/stream.h"

#include <cstring>
#include <string>
#include <utility>

namespace cudamod::python {

namespace {

bool is_exportable(const Buffer& self) {
    if (!self.memory) return false;
    const auto& pool = handles::box_of<handles::DeviceMemoryBox>(self.memory).pool;
    return pool && handles::box_of<handles::MemoryPoolBox>(pool).exportable;
}

} // namespace

bool is_mapped(const Buffer& self) {
    if (!self.memory) return false;
    const auto& pool = handles::box_of<handles::DeviceMemoryBox>(self.memory).pool;
    return pool && handles::box_of<handles::MemoryPoolBox>(pool).imported;
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

nb::object buffer_from_descriptor(nb::object resource, nb::object descriptor, nb::object stream) {
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
    nb::object kept = stream_argument(stream);
    handles::StreamHandle order = open_handle(*instance<Stream>(kept.ptr()));
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

nb::object reduce_buffer(nb::handle self) {
    const Buffer& buffer = self_of<Buffer>(self);
    if (buffer.closed || !(is_exportable(buffer) || is_mapped(buffer)))
        return refuse_pickling(self);
    return nb::make_tuple(python_half("cudamod.memory_ipc", "rebuild_buffer"),
                          nb::make_tuple(buffer_resource(buffer), ipc_descriptor(buffer)));
}

} // namespace cudamod::python
