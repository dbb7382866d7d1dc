#include "python/buffer_copy.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "python/gil_released.h"
#include "python/public_call.h"
#include "python/stream.h"

#include <cstring>
#include <string>
#include <utility>

namespace cudamod::python {

namespace {

std::string copy_subject(const Buffer& buffer) {
    return handles::describe("buffer", buffer.address) + " of " + std::to_string(buffer.size) +
           " bytes";
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

handles::StreamHandle copy_stream(nb::handle stream) {
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
    driver::check(status, name, [&] { return copy_subject(buffer); });
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

/// A new Buffer like this one: from its resource, or from the stream's device.
nb::object another(const Buffer& self, const handles::StreamHandle& order, nb::handle stream) {
    if (!self.resource.is_valid() || self.resource.is_none()) return new_buffer(order, self.size);
    return nb::object(self.resource).attr("allocate")(self.size, nb::arg("stream") = stream);
}

} // namespace

nb::object copy_buffer_to(nb::object self, nb::object destination, nb::object stream) {
    begin_public_call();
    const Buffer& source = open(self_of<Buffer>(self));
    handles::StreamHandle order = copy_stream(stream);
    if (destination.is_none()) destination = another(source, order, stream);
    if (const Buffer* target = instance<Buffer>(destination.ptr())) {
        copy_device(*target, source, order);
        return destination;
    }
    HostBytes host(destination, true);
    check_sizes(host.size(), source.size);
    // Of host memory that another process exported, the driver knows no device address.
    bool on_device = source.device >= 0;
    in_order(order, on_device ? "cuMemcpyDtoHAsync" : "cuMemcpyAsync", source,
             [to = host.data(), from = source.address, size = source.size, on_device](CUstream s) {
                 return on_device ? driver::table.cuMemcpyDtoHAsync(to, from, size, s)
                                  : driver::table.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                                                from, size, s);
             });
    return destination;
}

void copy_buffer_from(const Buffer& self, nb::object source, nb::object stream) {
    begin_public_call();
    open(self);
    handles::StreamHandle order = copy_stream(stream);
    if (const Buffer* other = instance<Buffer>(source.ptr())) {
        copy_device(self, *other, order);
        return;
    }
    HostBytes host(source, false);
    check_sizes(self.size, host.size());
    bool on_device = self.device >= 0;
    in_order(order, on_device ? "cuMemcpyHtoDAsync" : "cuMemcpyAsync", self,
             [to = self.address, from = host.data(), size = self.size, on_device](CUstream s) {
                 return on_device ? driver::table.cuMemcpyHtoDAsync(to, from, size, s)
                                  : driver::table.cuMemcpyAsync(
                                        to, reinterpret_cast<CUdeviceptr>(from), size, s);
             });
}

void fill_buffer(const Buffer& self, nb::object value, nb::object stream) {
    begin_public_call();
    open(self);
    handles::StreamHandle order = copy_stream(stream);
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

} // namespace cudamod::python
