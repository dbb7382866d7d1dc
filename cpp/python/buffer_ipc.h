#pragma once

#include "python/buffer.h"

namespace cudamod::python {

/// Whether another process exported the memory.
bool is_mapped(const Buffer& self);

/// What describes the memory to another process. Throws RuntimeError unless its pool is one that
/// processes share.
nb::object ipc_descriptor(const Buffer& self);

/// Memory that another process exported; `resource` was imported from that process.
nb::object buffer_from_descriptor(nb::object resource, nb::object descriptor, nb::object stream);

/// How a Buffer is pickled: by resource and descriptor. Throws TypeError for one that belongs to
/// this process.
nb::object reduce_buffer(nb::handle self);

} // namespace cudamod::python
