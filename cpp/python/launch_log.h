#pragma once

#include "python/instance.h"
#include "python/launch_path.h"

namespace cudamod::python {

/// The last launches of each device, as text, when CUDAMOD_LAUNCH_LOG asks for them: kernel,
/// configuration, stream, packed arguments, and the line of Python.

/// How many are kept for each device; 0: none.
unsigned launch_log_length();
void set_launch_log_length(unsigned length);

/// Notes a launch whose arguments are packed. `pointers`: the address of each.
void note_in_launch_log(const LaunchParts& parts, void* const* pointers) noexcept;

/// What is kept, device by device, each from the oldest to the newest.
nb::tuple launch_log();

} // namespace cudamod::python
