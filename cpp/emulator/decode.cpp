#include "emulator/code.h"
#include "emulator/occupancy.h"
#include "emulator/profile.h"
#include "emulator/settings.h"
#include "formats/cubin.h"
#include "formats/fatbin.h"
#include "formats/image.h"

#include <algorithm>

namespace cudamod::emulator {
namespace {

constexpr std::uint32_t kMostThreads = 1024;

// Registers of PTX are an estimate. With no more than this it never forbids a block that the card
// might run.
constexpr std::uint32_t kMostEstimatedRegisters = 64;

/// The newest PTX version of a driver, 90 for 9.0 (the PTX ISA's release history).
int newest_isa(int driver_version) {
    struct Release {
        int driver, isa;
    };
    constexpr Release kReleases[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12060, 85},
                                     {12050, 85}, {12040, 84}, {12030, 83}, {12020, 82},
                                     {12010, 81}, {12000, 80}, {11080, 78}, {0, 77}};
    if (driver_version > 13000) return 90 + (driver_version - 13000) / 10;
    for (const Release& release : kReleases) {
        if (driver_version >= release.driver) return release.isa;
    }
    return 77;
}

Code refused(CUresult status, std::string sentence, std::string error_log = {}) {
    Code code;
    code.status = status;
    code.sentence = std::move(sentence);
    code.error_log = std::move(error_log);
    return code;
}

/// As many threads as the register file holds of this kernel, whole warps in each of the
/// multiprocessor's partitions.
std::uint32_t limit_threads(std::uint32_t threads, std::uint32_t registers, const Profile& device) {
    const auto sm = multiprocessor(device.capability());
    if (!sm || !registers) return threads;
    if (registers > sm->registers_per_thread)
        return 0; // a damaged image: no block can have so many
    const std::uint32_t per_warp =
        (registers * sm->warp_size + sm->register_unit - 1) / sm->register_unit * sm->register_unit;
    const std::uint32_t warps = sm->registers / sm->partitions / per_warp * sm->partitions;
    return std::min(threads, warps * sm->warp_size);
}

std::array<std::uint32_t, 3> array_of(const ptx::Dim3& dimensions) {
    return {dimensions.x, dimensions.y, dimensions.z};
}

std::uint32_t threads_in(const std::array<std::uint32_t, 3>& dimensions) {
    return dimensions[0] * dimensions[1] * dimensions[2];
}

KernelCode from_entry(const ptx::Program& program, std::size_t index, const Profile& device,
                      std::uint32_t max_registers) {
    const ptx::Entry& entry = program.entries()[index];
    KernelCode kernel;
    kernel.name = entry.name;
    for (const ptx::Parameter& parameter : entry.parameters)
        kernel.parameters.push_back({parameter.offset, parameter.size});
    kernel.parameter_bytes = entry.parameter_bytes;
    kernel.registers = std::min({entry.registers, kMostEstimatedRegisters, max_registers});
    kernel.static_shared = entry.static_shared_bytes;
    kernel.local_bytes = entry.local_bytes;
    kernel.required_threads = array_of(entry.required_threads);
    kernel.required_cluster = array_of(entry.required_cluster);
    kernel.explicit_cluster = entry.explicit_cluster;
    kernel.max_cluster_rank = entry.max_cluster_rank;
    kernel.ptx_version = program.target();
    kernel.binary_version = device.capability();
    kernel.entry = index;
    const std::uint32_t bound =
        std::max(threads_in(kernel.required_threads), threads_in(array_of(entry.max_threads)));
    kernel.max_threads = bound ? std::min(bound, kMostThreads)
                               : limit_threads(kMostThreads, kernel.registers, device);
    for (const ptx::Variable& variable : program.variables()) {
        if (variable.space == ptx::VariableSpace::Constant)
            kernel.constant_bytes += static_cast<std::uint32_t>(variable.size);
    }
    return kernel;
}

std::vector<std::byte> as_bytes(const std::vector<std::uint8_t>& numbers) {
    const auto* first = reinterpret_cast<const std::byte*>(numbers.data());
    return {first, first + numbers.size()};
}

void add_program(Code& code, std::shared_ptr<const ptx::Program> program) {
    for (const ptx::Variable& variable : program->variables()) {
        code.variables.push_back({variable.name, variable.size, variable.alignment,
                                  variable.space == ptx::VariableSpace::Constant, false,
                                  as_bytes(variable.initial), variable.relocations});
    }
    code.program = std::move(program);
}

ptx::LoadResult compile(std::string_view text, const Profile& device) {
    return ptx::load(text,
                     {device.capability(), device.suffix, newest_isa(settings().driver_version)});
}

Code decode_ptx(std::string_view text, const Profile& device, std::uint32_t max_registers) {
    ptx::LoadResult loaded = compile(text, device);
    if (loaded.status == ptx::LoadStatus::UnsupportedVersion) {
        return refused(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                       "The PTX is newer than this driver (CUDAMOD_EMULATOR_DRIVER_VERSION)",
                       loaded.log);
    }
    if (loaded.status != ptx::LoadStatus::Ok)
        return refused(CUDA_ERROR_INVALID_PTX, "The PTX cannot be compiled", loaded.log);
    Code code;
    for (std::size_t index = 0; index < loaded.program->entries().size(); ++index) {
        code.kernels.push_back(from_entry(*loaded.program, index, device, max_registers));
    }
    add_program(code, std::move(loaded.program));
    return code;
}

/// Whether a device runs code that was assembled for an architecture: same major number, no newer
/// minor one, and code for features of one architecture on that one alone.
bool runs(int sm, char suffix, const Profile& device) {
    if (suffix == 'a') return sm == device.capability();
    return sm / 10 == device.major && sm % 10 <= device.minor;
}

KernelCode from_cubin(const formats::Cubin& cubin, const formats::CubinKernel& read,
                      const Profile& device) {
    KernelCode kernel;
    kernel.name = read.name;
    for (const auto& parameter : read.parameters)
        kernel.parameters.push_back({parameter.offset, parameter.size});
    kernel.parameter_bytes = read.parameter_bytes;
    kernel.registers = read.registers;
    kernel.static_shared = read.static_shared_bytes;
    kernel.local_bytes = read.local_bytes;
    kernel.constant_bytes = read.constant_bytes;
    kernel.barriers = read.barriers;
    kernel.required_threads = read.required_threads;
    kernel.required_cluster = read.required_cluster;
    kernel.explicit_cluster = read.explicit_cluster;
    kernel.max_cluster_rank = read.max_cluster_rank;
    kernel.ptx_version = cubin.virtual_sm;
    kernel.binary_version = cubin.sm;
    kernel.max_threads = limit_threads(read.max_threads_per_block, read.registers, device);
    return kernel;
}

Code decode_cubin(formats::Bytes image, const Profile& device) {
    const auto cubin = formats::read_cubin(image);
    if (!cubin) {
        Code code = refused(CUDA_ERROR_INVALID_IMAGE, "The cubin is damaged: " + cubin.reason());
        code.fails_at_load = true;
        return code;
    }
    if (cubin->relocatable)
        return refused(CUDA_ERROR_INVALID_IMAGE,
                       "The cubin is relocatable: it has to be linked first");
    if (!runs(cubin->sm, cubin->suffix, device)) {
        return refused(CUDA_ERROR_NO_BINARY_FOR_GPU, "The cubin is for sm_" +
                                                         std::to_string(cubin->sm) +
                                                         ", the device is " + device.architecture);
    }
    Code code;
    code.not_executable = "has no PTX";
    for (const auto& kernel : cubin->kernels)
        code.kernels.push_back(from_cubin(*cubin, kernel, device));
    for (const auto& variable : cubin->variables) {
        code.variables.push_back({variable.name,
                                  variable.size,
                                  256,
                                  variable.space == formats::VariableSpace::Constant,
                                  variable.managed,
                                  variable.initial,
                                  {}});
    }
    return code;
}

/// Gives the kernels of a cubin the PTX that lies beside it.
void add_ptx(Code& code, std::string_view text, const Profile& device) {
    ptx::LoadResult loaded = compile(text, device);
    if (!loaded.program) {
        code.not_executable = "has PTX that the emulated driver cannot run (" + loaded.log + ")";
        return;
    }
    const auto& entries = loaded.program->entries();
    for (KernelCode& kernel : code.kernels) {
        const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
            return entry.name == kernel.name;
        });
        if (found != entries.end())
            kernel.entry = static_cast<std::size_t>(found - entries.begin());
    }
    std::vector<VariableCode> of_cubin = std::move(code.variables);
    code.variables.clear();
    add_program(code, std::move(loaded.program));
    for (VariableCode& variable : of_cubin) {
        const bool known =
            std::any_of(code.variables.begin(), code.variables.end(),
                        [&](const auto& other) { return other.name == variable.name; });
        if (!known) code.variables.push_back(std::move(variable));
    }
}

Code decode_fatbin(formats::Bytes image, const Profile& device, std::uint32_t max_registers) {
    const auto fatbin = formats::read_fatbin(image);
    if (!fatbin) {
        Code code = refused(CUDA_ERROR_INVALID_IMAGE, "The fatbin is damaged: " + fatbin.reason());
        code.fails_at_load = true;
        return code;
    }
    const formats::FatbinEntry *elf = nullptr, *ptx = nullptr;
    for (const auto& entry : fatbin->entries) {
        if (entry.kind == formats::FatbinKind::Elf && runs(entry.sm, entry.suffix, device) &&
            (!elf || entry.sm > elf->sm))
            elf = &entry;
        const bool compiles =
            entry.suffix ? runs(entry.sm, entry.suffix, device) : entry.sm <= device.capability();
        if (entry.kind == formats::FatbinKind::Ptx && compiles && (!ptx || entry.sm > ptx->sm))
            ptx = &entry;
    }
    if (!elf && !ptx)
        return refused(CUDA_ERROR_NO_BINARY_FOR_GPU,
                       "The fatbin holds no code for " + device.architecture);
    const auto text = ptx ? formats::extract(*ptx)
                          : formats::Result<std::vector<std::byte>>(formats::Failure{"no PTX"});
    if (!elf)
        return text ? decode_ptx(formats::as_text(*text), device, max_registers)
                    : refused(CUDA_ERROR_INVALID_IMAGE, text.reason());
    const auto binary = formats::extract(*elf);
    if (!binary) return refused(CUDA_ERROR_INVALID_IMAGE, binary.reason());
    Code code = decode_cubin(*binary, device);
    if (code.status != CUDA_SUCCESS || !ptx) return code;
    if (text)
        add_ptx(code, formats::as_text(*text), device);
    else
        code.not_executable = "has PTX that cannot be read (" + text.reason() + ")";
    return code;
}

Code decode_any(formats::Bytes image, const Profile& device, std::uint32_t max_registers) {
    switch (formats::sniff(image)) {
    case formats::ImageKind::Ptx:
        return decode_ptx(formats::as_text(image), device, max_registers);
    case formats::ImageKind::Cubin:
        return decode_cubin(image, device);
    case formats::ImageKind::Fatbin:
        return decode_fatbin(image, device, max_registers);
    default:
        return refused(CUDA_ERROR_INVALID_IMAGE,
                       std::string("The image is no cubin, PTX or fatbin (") +
                           formats::name(formats::sniff(image)) + ")",
                       "Binary format of the image is not recognized\n");
    }
}

} // namespace

const KernelCode* Code::find(std::string_view kernel) const {
    const auto found = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const KernelCode& code) { return code.name == kernel; });
    return found == kernels.end() ? nullptr : &*found;
}

std::shared_ptr<const Code> decode(const std::vector<std::byte>& image, const Profile& device,
                                   std::uint32_t max_registers) {
    return std::make_shared<const Code>(decode_any(image, device, max_registers));
}

} // namespace cudamod::emulator
