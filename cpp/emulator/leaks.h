#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cudamod::emulator {

/// Live objects of each family that a program creates: {"stream", 2}, ... in a fixed order. Takes
/// the driver's lock.
std::vector<std::pair<std::string, std::size_t>> live_counts();

/// What is still alive, on stderr; nothing is written when nothing is.
void report_leaks();

} // namespace cudamod::emulator
