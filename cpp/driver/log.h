/// The driver's own words about a failed call (CUDA 12.9 and newer).
#pragma once

#include <string>

#include <cuda.h>

#include "driver/library.h"

namespace cudamod::driver {

/// Asks the driver for its messages. Without cuLogsRegisterCallback, does nothing.
void register_log_callback(const Opened& driver) noexcept;

/// Takes what the driver said on this thread about the last failing call, when that call answered
/// `status`; else nothing. Either way the thread's messages are gone.
std::string take_log(CUresult status);

} // namespace cudamod::driver
