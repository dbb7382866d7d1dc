#pragma once

#include <span>

namespace cudamod::emulator {

/// One row of entry_point_list.h.
struct EntryPoint {
    const char* name;
    int version;
    const char* symbol;
    int (*address)();
    bool implemented;
};

std::span<const EntryPoint> entry_points();

} // namespace cudamod::emulator
