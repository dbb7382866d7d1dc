#pragma once

#include "python/stream.h"

namespace cudamod::python {

/// Stream.begin_capture, end_capture and is_capturing.
void define_capture(nb::class_<Stream>& type);

} // namespace cudamod::python
