#include "python/buffer_origin.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/registry.h"
#include "python/device.h"
#include "python/integer_argument.h"
#include "python/memory_owner.h"
#include "python/memory_pool.h"
#include "python/public_call.h"
#include "python/stream.h"

#include <string>
#include <utility>

namespace cudamod::python {

namespace {

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
nb::object adopt(nb::handle type, std::uint64_t address, std::size_t size, nb::object resource,
                 nb::object stream) {
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
                     pool.place.kind == handles::PoolKind::Managed, std::move(resource), type);
}

/// Memory of a resource written in Python, which says what it is.
nb::object with_resource(nb::handle type, std::uint64_t address, std::size_t size,
                         nb::object resource, nb::object stream) {
    int device = kNoDevice;
    if (nb::cast<bool>(nb::bool_(resource.attr("is_device_accessible"))))
        device = nb::cast<bool>(nb::bool_(resource.attr("is_host_accessible")))
                     ? kEveryDevice
                     : ordinal_of(resource.attr("device_id"));
    bool managed = nb::cast<bool>(nb::bool_(resource.attr("is_managed")));
    nb::object order = stream_or_default(std::move(stream), device);
    nb::object owner = make<MemoryOwner>(resource, std::move(order), address, size);
    return make_as<Buffer>(
        type,
        Buffer{address, size, device, managed, false, {}, std::move(owner), std::move(resource)});
}

} // namespace

nb::object buffer_around(nb::handle type, std::uint64_t address, std::size_t size,
                         nb::object owner) {
    Described found;
    if (address) found = describe_address(address);
    return make_as<Buffer>(
        type,
        Buffer{
            address, size, found.device, found.managed, false, {}, std::move(owner), nb::none()});
}

nb::object buffer_from_handle(nb::handle type, nb::handle address, nb::handle size_object,
                              nb::object resource, nb::object owner, nb::object stream) {
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
            return with_resource(type, value, size, std::move(resource), std::move(stream));
        if (value) return adopt(type, value, size, std::move(resource), std::move(stream));
    }
    nb::object made = buffer_around(type, value, size, std::move(owner));
    payload<Buffer>(made.ptr())->resource = std::move(resource); // 0 bytes of a pool
    return made;
}

nb::object buffer_resource(const Buffer& self) {
    if (self.resource.is_valid() && !self.resource.is_none()) return self.resource;
    bool ours = self.memory || (self.size == 0 && !self.closed && self.device >= 0);
    return ours ? standard_resource(self.device) : nb::none();
}

} // namespace cudamod::python
