#pragma once

#include "handles/device_memory.h"
#include "python/instance.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cudamod::python {

/// A tensor in memory that kernels can use, as the object that owns it describes it. What the
/// object doesn't say (a Buffer has neither shape nor type) is absent.
struct Tensor {
    std::uint64_t address = 0;
    int device = -1; // -1: reachable from every device, or unknown
    std::optional<std::uint64_t> size;
    std::optional<std::vector<std::int64_t>> shape, strides; // elements; bytes, absent: contiguous
    std::string data_type;                                   // "float32"
    handles::DeviceMemoryHandle memory;                      // keeps a Buffer's memory, also closed
    nb::object owner;                                        // keeps the memory alive otherwise
};

/// Reads a Buffer, a type with DLPack's C exchange API, an object with `__cuda_array_interface__`,
/// or an address. `what` names the call in errors. Throws TypeError for anything else and for host
/// memory, RuntimeError for a closed Buffer.
Tensor read_tensor(nb::handle object, const char* what);

} // namespace cudamod::python
