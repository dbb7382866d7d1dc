#pragma once

#include "emulator/api.h"

namespace cudamod::emulator {

/// A reference count with a destructor, for graphs that keep what they use.
struct UserObject {
    void* pointer = nullptr;
    CUhostFn destroy = nullptr;
    unsigned long long references = 0;
};

} // namespace cudamod::emulator
