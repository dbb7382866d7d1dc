#pragma once

#include "handles/device_memory.h"
#include "python/instance.h"

#include <cstddef>
#include <cstdint>

namespace cudamod::python {

/// Lets an owner go; owners of owners are let go one after the other, since a long chain of them
/// would overflow the stack.
void release_owner(nb::object owner) noexcept;

/// Python's `Buffer`: a range of memory that kernels can use. `address` is 0 once it is closed.
struct Buffer {
    std::uint64_t address;
    std::size_t size;
    int device; // where it lies; -1: reachable from every device (pinned or managed memory)
    bool managed;
    bool closed = false;
    handles::DeviceMemoryHandle memory; // empty for a foreign range
    nb::object owner;                   // keeps a foreign range alive

    ~Buffer() { release_owner(std::move(owner)); }

    bool reachable_from(int other) const { return device == other || device < 0; }

    bool host_accessible() const { return device < 0; }

    static PyTypeObject* python_type;
    static const Buffer& of(PyObject* exact) { return *payload<Buffer>(exact); }
};

/// Memory that somebody else owns, as a Buffer or as a subclass of it; `owner` is kept alive.
/// Throws DriverError when the driver doesn't know the address.
nb::object buffer_around(nb::handle type, std::uint64_t address, std::size_t size,
                         nb::object owner);

/// `size` bytes on the stream's device; 0 bytes have address 0.
nb::object new_buffer(const handles::StreamHandle& stream, std::size_t size);

} // namespace cudamod::python
