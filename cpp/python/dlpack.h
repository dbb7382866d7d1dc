#pragma once

#include "python/buffer.h"

#include <utility>

namespace cudamod::python {

/// (device type, device id) of DLPack.
std::pair<int, int> dlpack_device(const Buffer& buffer);

/// A DLPack capsule of the buffer's bytes as one dimension of uint8. It holds the memory, which so
/// outlives a close() of the buffer. The consumer's `stream` is made to wait for the one that the
/// memory was allocated on.
nb::object export_dlpack(const Buffer& buffer, nb::handle stream, nb::handle max_version,
                         nb::handle device, nb::handle copy);

} // namespace cudamod::python
