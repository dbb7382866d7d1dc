#pragma once

#include "emulator/api.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cudamod::emulator {
struct ValidLaunch;
}

namespace cudamod::emulator::recorder {

struct Record {
    std::uint64_t index = 0; ///< counts from 0 since the last clear
    std::string kernel;
    int device = 0;
    std::array<std::uint32_t, 3> grid{}, block{}, cluster{};
    std::uint32_t dynamic_shared = 0;
    bool cooperative = false;
    CUstream stream = nullptr; ///< as the caller gave it
    std::vector<std::byte> parameters;
    std::vector<std::uint32_t> offsets, sizes; ///< of each parameter
    std::vector<CUlaunchAttribute> attributes; ///< as the caller gave them
};

/// Recording is off until this; the newest 65,536 launches are kept.
void enable(bool on);
void write(const ValidLaunch& launch, CUstream stream);
void clear();
std::size_t size();

/// A copy of launch `position`, counted from the oldest that is kept; false if there is none.
bool read(std::size_t position, Record& record);

} // namespace cudamod::emulator::recorder
