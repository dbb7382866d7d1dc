#pragma once

#include "python/buffer.h"

namespace cudamod::python {

/// Buffer.copy_to: to another Buffer, a writable host object, or a new Buffer when `destination` is
/// None. Answers the destination; throws ValueError when the sizes differ.
nb::object copy_buffer_to(nb::object self, nb::object destination, nb::object stream);

/// Buffer.copy_from: from another Buffer or a host object. Throws ValueError when the sizes differ.
void copy_buffer_from(const Buffer& self, nb::object source, nb::object stream);

/// Buffer.fill: with a byte or a pattern of 1, 2 or 4 bytes.
void fill_buffer(const Buffer& self, nb::object value, nb::object stream);

} // namespace cudamod::python
