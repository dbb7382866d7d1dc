#pragma once

#include "handles/stream.h"

#include <cuda.h>

namespace cudamod::handles {

/// Streams that other libraries name by raw value and device, again and again: what is found once
/// is remembered for the life of the process, since such streams come from pools that live as long.
/// 0, 1 and 2 are that device's default streams.

/// A remembered stream, or null. No driver call, no lock.
const StreamBox* known_work_stream(CUstream raw, int device) noexcept;

/// The stream, looked up and remembered unless it is our own. Raises std::invalid_argument for a
/// device that does not exist or a stream of another device.
StreamHandle work_stream(CUstream raw, int device);

} // namespace cudamod::handles
