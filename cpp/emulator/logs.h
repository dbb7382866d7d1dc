#pragma once

#include "emulator/api.h"

#include <string>

namespace cudamod::emulator::logs {

/// Keeps a sentence for the call that runs on this thread.
void say(std::string sentence);

/// Delivers this thread's sentences and "Returning N (NAME) from CALL" to the registered callbacks,
/// and keeps them for cuLogsDumpToMemory. Call it without the driver's lock.
void deliver(const char* call, CUresult status);

} // namespace cudamod::emulator::logs
