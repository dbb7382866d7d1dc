#pragma once

#include "handles/device_memory.h"
#include "python/instance.h"

#include <cstddef>
#include <cstdint>

namespace cudamod::python {

/// Lets an owner go; owners of owners are let go one after the other, since a long chain of them
/// would overflow the stack.
void release_owner(nb::object owner) noexcept;

/// `Buffer::device` of memory that every device reaches (pinned or managed), and of memory of a
/// resource of Python that none reaches.
constexpr int kEveryDevice = -1, kNoDevice = -2;

/// Python's `Buffer`: a range of memory that kernels can use. `address` is 0 once it is closed.
struct Buffer {
    std::uint64_t address;
    std::size_t size;
    int device; // where it lies, kEveryDevice or kNoDevice
    bool managed;
    bool closed = false;
    handles::DeviceMemoryHandle memory; // empty for a foreign range
    nb::object owner;                   // keeps a foreign range alive
    nb::object resource;        // none: that of the device's current pool, or of a foreign range
    nb::object descriptor = {}; // of memory of another process: what it was imported by

    ~Buffer() {
        release_owner(std::move(owner));
        release_owner(std::move(resource));
    }

    bool reachable_from(int other) const { return device == other || device == kEveryDevice; }

    bool host_accessible() const { return device < 0; }

    static PyTypeObject* python_type;
    static const Buffer& of(PyObject* exact) { return *payload<Buffer>(exact); }
};

/// The same Buffer; throws RuntimeError when it is closed.
const Buffer& open(const Buffer& buffer);

/// `size` bytes of the stream's device, from the pool that was current first; 0 bytes have address
/// 0.
nb::object new_buffer(const handles::StreamHandle& stream, std::size_t size);

/// The Buffer of memory from a resource; no memory is 0 bytes. `type`: Buffer or a subclass of it.
nb::object buffer_of(handles::DeviceMemoryHandle memory, int device, bool managed,
                     nb::object resource, nb::handle type = nb::type<Buffer>());

} // namespace cudamod::python
