#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cudamod::formats {

struct CubinParameter {
    std::uint32_t offset;
    std::uint32_t size;
    bool operator==(const CubinParameter&) const = default;
};

struct CubinKernel {
    std::string name;
    std::uint32_t registers = 0;
    std::uint32_t static_shared_bytes = 0; ///< without the 1 KiB that the system reserves per block
    std::uint32_t local_bytes = 0;         ///< per thread
    std::uint32_t constant_bytes = 0;      ///< user constants of the whole image
    std::uint32_t parameter_bytes = 0;
    std::vector<CubinParameter> parameters; ///< in order of declaration
    /// Launch bounds and required block size; zeros when there are none.
    std::array<std::uint32_t, 3> max_threads{};
    std::array<std::uint32_t, 3> required_threads{};
    /// The product of whichever of those is given, else 1,024: what the image alone says of
    /// CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK (registers may lower it, see emulator/occupancy.h).
    std::uint32_t max_threads_per_block = 1024;
    /// Compile-time cluster dimensions; zeros when there are none.
    std::array<std::uint32_t, 3> required_cluster{};
    bool explicit_cluster = false;
    bool blocks_are_clusters = false;
    std::uint32_t max_cluster_rank = 0;
    std::uint32_t barriers = 0; ///< named barriers, 0 to 16
    /// The most registers that the compiler was allowed.
    std::uint32_t max_registers = 0;
};

enum class VariableSpace { Global, Constant };

struct CubinVariable {
    std::string name;
    std::uint64_t size;
    VariableSpace space;
    std::uint64_t offset; ///< inside its section (.nv.global, .nv.global.init or .nv.constant3)
    bool exported;        ///< global or weak, not local to the image
    bool managed;
    std::vector<std::byte> initial; ///< size bytes, or none: the variable starts as zeros
};

struct Cubin {
    int sm = 0;         ///< 75, 90, 120, ...
    char suffix = '\0'; ///< 'a' or 'f' when the image says so
    int virtual_sm =
        0; ///< architecture of the PTX that it was made from (CU_FUNC_ATTRIBUTE_PTX_VERSION)
    int toolkit = 0;          ///< of the compiler: 130 is CUDA 13.0; 0 when the image doesn't say
    int abi = 0;              ///< ELF ABI version: 7 (CUDA 12) or 8 (CUDA 13)
    bool relocatable = false; ///< made with -dc: to be linked before it can be loaded
    std::vector<CubinKernel> kernels;     ///< in order of the symbol table
    std::vector<CubinVariable> variables; ///< in order of the symbol table

    const CubinKernel* find_kernel(std::string_view name) const;
    const CubinVariable* find_variable(std::string_view name) const;
};

/// Metadata of an ELF image for a GPU. Knows ABI 7 and 8.
Result<Cubin> read_cubin(Bytes image);

} // namespace cudamod::formats
