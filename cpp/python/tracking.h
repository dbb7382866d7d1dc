#pragma once

namespace cudamod::python {

/// Hands the queued creations and destructions to whoever traces. An exception of theirs becomes
/// an unraisable one.
void deliver_trace_events() noexcept;

} // namespace cudamod::python
