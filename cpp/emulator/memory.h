#pragma once

#include "emulator/address_space.h"
#include "emulator/api.h"

#include <cstddef>
#include <memory>

namespace cudamod::emulator {

struct Context;

/// Device memory of the context; fails with CUDA_ERROR_INVALID_VALUE for 0 bytes and
/// CUDA_ERROR_OUT_OF_MEMORY.
std::shared_ptr<Allocation> allocate(const std::shared_ptr<Context>& context, std::size_t bytes,
                                     std::size_t alignment = 512);

/// The live allocation that begins at the address; fails with CUDA_ERROR_INVALID_VALUE.
std::shared_ptr<Allocation> find_allocation(CUdeviceptr address);

/// A piece of memory that a copy or fill touches: the allocation keeps it alive, `host` is where
/// the driver sees it.
struct Span {
    std::shared_ptr<Allocation> allocation; ///< null for ordinary host memory
    std::byte* host = nullptr;
};

/// [address, address + bytes) of device-accessible memory; fails with CUDA_ERROR_INVALID_VALUE.
Span device_span(CUdeviceptr address, std::size_t bytes);

/// The same for an address that may be the host's as well.
Span any_span(std::uint64_t address, std::size_t bytes);

} // namespace cudamod::emulator
