#pragma once

#include "emulator/code.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace cudamod::emulator {

/// The bytes that a caller loaded, and what each kind of device makes of them.
class Image {
  public:
    explicit Image(std::vector<std::byte> bytes, std::uint32_t max_registers = UINT32_MAX)
        : bytes_(std::move(bytes)), max_registers_(max_registers) {}

    /// Decoded at the first use; guarded by the driver's lock.
    std::shared_ptr<const Code> code_for(const Profile& device);

  private:
    std::vector<std::byte> bytes_;
    std::uint32_t max_registers_;
    std::map<const Profile*, std::shared_ptr<const Code>> codes_;
};

/// A copy of the image that begins at `data`, whose length its own headers tell. Memory that is not
/// there ends it instead of faulting.
std::vector<std::byte> copy_image(const void* data);

/// The content of a file; fails with CUDA_ERROR_FILE_NOT_FOUND.
std::vector<std::byte> read_file(const char* path);

/// The most registers that a caller's JIT options allow.
std::uint32_t max_registers_of(unsigned count, const CUjit_option* options, void** values);

/// Writes the logs of a load into the buffers among the caller's JIT options, and how much was
/// written into their sizes.
void write_logs(const Code& code, unsigned count, const CUjit_option* options, void** values);

} // namespace cudamod::emulator
