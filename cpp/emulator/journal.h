#pragma once

#include "emulator/api.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace cudamod::emulator::journal {

struct Entry {
    std::uint64_t index = 0;  ///< counts from 0 since the last clear
    std::uint64_t thread = 0; ///< the kernel's thread id
    const char* call = "";
    std::string arguments;
    CUresult status = CUDA_SUCCESS;
};

/// Writing is off until this; the newest million entries are kept.
void enable(bool on);
void write(const char* call, std::string arguments, CUresult status);
void clear();
std::size_t size();

/// Writes what is kept to a file, a call a line; false if it cannot be written.
bool write_file(const std::string& path);

/// A copy of entry `position`, counted from the oldest that is kept; false if there is none.
bool read(std::size_t position, Entry& entry);

} // namespace cudamod::emulator::journal
