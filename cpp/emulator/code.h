#pragma once

#include "emulator/api.h"
#include "emulator/ptx/program.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudamod::emulator {

struct Profile;

struct KernelParameter {
    std::uint32_t offset = 0, size = 0;
};

/// What an image says of one kernel, for one device.
struct KernelCode {
    std::string name;
    std::vector<KernelParameter> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t max_threads = 1024, registers = 0, static_shared = 0, local_bytes = 0,
                  constant_bytes = 0, barriers = 0;
    std::array<std::uint32_t, 3> required_threads{}, required_cluster{}; ///< zeros: none
    bool explicit_cluster = false; ///< launched in clusters, whoever gives their size
    std::uint32_t max_cluster_rank = 0;
    int ptx_version = 0, binary_version = 0;
    std::optional<std::size_t> entry; ///< in the program; nothing: there is no PTX of it
};

/// A variable at module scope.
struct VariableCode {
    std::string name;
    std::uint64_t bytes = 0, alignment = 1;
    bool constant = false, managed = false;
    std::vector<std::byte> initial; ///< empty: zeros
    std::vector<ptx::Relocation> relocations;
};

/// An image as one kind of device sees it. Where `status` is not CUDA_SUCCESS there are no kernels,
/// and whoever asks for one gets the status.
struct Code {
    CUresult status = CUDA_SUCCESS;
    bool fails_at_load =
        false; ///< the load itself answers the status, as the card does for a damaged cubin
    std::string sentence;  ///< why it failed
    std::string error_log; ///< what the JIT compiler writes
    std::vector<KernelCode> kernels;
    std::vector<VariableCode>
        variables; ///< of the program, in its order, then those of the cubin alone
    std::shared_ptr<const ptx::Program> program; ///< null: nothing of the image can be executed
    std::string not_executable;                  ///< why there is no program

    const KernelCode* find(std::string_view kernel) const;
};

/// Reads an image for a device. Never fails; the answer says what is wrong. `max_registers`: the
/// most that PTX may be compiled to.
std::shared_ptr<const Code> decode(const std::vector<std::byte>& image, const Profile& device,
                                   std::uint32_t max_registers);

} // namespace cudamod::emulator
