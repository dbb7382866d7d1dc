#pragma once

#include <cstdint>

namespace cudamod::emulator {

/// Launches that null-launch mode swallowed.
std::uint64_t null_launches();
void count_null_launch();
void clear_null_launches();

/// What cuGetProcAddress gives out in null-launch mode instead of a launch function (counts and
/// returns success) and of cuStreamIsCapturing (never). Null for other names.
void* null_entry_point(const char* symbol);

} // namespace cudamod::emulator
