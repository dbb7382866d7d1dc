#pragma once

#include <string>

namespace cudamod::python {

/// Hands the queued creations and destructions to whoever traces. An exception of theirs becomes
/// an unraisable one.
void deliver_trace_events() noexcept;

/// The line of Python that calls this package, "file:line"; empty where there is none. May be
/// called without the interpreter lock, and with an exception under way.
std::string creation_site();

} // namespace cudamod::python
