#pragma once

#include "python/buffer.h"

namespace cudamod::python {

/// Buffer.from_handle: memory of somebody else, kept alive by `owner`, or of `resource`, which gets
/// it back in the order of `stream`.
nb::object buffer_from_handle(nb::handle type, nb::handle address, nb::handle size_object,
                              nb::object resource, nb::object owner, nb::object stream);

/// Memory that somebody else owns, as a Buffer or as a subclass of it; `owner` is kept alive.
/// Throws DriverError when the driver doesn't know the address.
nb::object buffer_around(nb::handle type, std::uint64_t address, std::size_t size,
                         nb::object owner);

/// Where the memory came from; None for somebody else's, and once closed.
nb::object buffer_resource(const Buffer& self);

} // namespace cudamod::python
