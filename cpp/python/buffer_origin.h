#pragma once

#include "python/buffer.h"

namespace cudamod::python {

/// Buffer.from_handle: memory of somebody else, kept alive by `owner`, or of `resource`, which gets
/// it back in the order of `stream`.
nb::object buffer_from_handle(nb::handle address, nb::handle size_object, nb::object resource,
                              nb::object owner, nb::object stream);

/// Where the memory came from; None for somebody else's, and once closed.
nb::object buffer_resource(const Buffer& self);

} // namespace cudamod::python
