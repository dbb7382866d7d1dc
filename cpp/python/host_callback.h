#pragma once

#include "python/stream.h"

namespace cudamod::python {

/// Stream.add_callback.
void define_callback(nb::class_<Stream>& type);

/// Lets go of functions that will not be called again. They may hold anything, whose destruction
/// must not happen where the driver calls them. The interpreter lock is held.
void drop_finished_callbacks() noexcept;

/// From here on the driver's threads stay out of Python (interpreter finalisation). Those that are
/// inside get a moment to come out.
void stop_callbacks() noexcept;

} // namespace cudamod::python
