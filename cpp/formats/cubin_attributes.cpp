#include "formats/cubin_attributes.h"

#include <algorithm>
#include <optional>

namespace cudamod::formats {
namespace {

// Derived from cubins with known sources, see reference "Cubin metadata".
enum Code : std::uint8_t {
    kMaxThreads = 0x05,
    kRequiredThreads = 0x10,
    kFrameSize = 0x11,
    kParameterInfo = 0x17,
    kParameterBytes = 0x19,
    kMaxRegisters = 0x1b,
    kRegisterCount = 0x2f,
    kToolkit = 0x37,
    kClusterDimensions = 0x3d,
    kExplicitCluster = 0x3e,
    kMaxClusterRank = 0x3f,
    kWideParameterInfo = 0x45,
    kBarrierCount = 0x4c,
    kBlocksAreClusters = 0x5b,
};

struct OrdinalParameter {
    std::uint32_t ordinal;
    CubinParameter parameter;
};

std::array<std::uint32_t, 3> three_words(const CubinAttribute& attribute) {
    return {attribute.word(0), attribute.word(1), attribute.word(2)};
}

std::uint32_t product(const std::array<std::uint32_t, 3>& size) {
    std::uint64_t total = 1;
    for (auto each : size)
        total = std::min<std::uint64_t>(total * std::max(each, 1u), UINT32_MAX);
    return static_cast<std::uint32_t>(total);
}

std::optional<std::string> take_parameters(std::vector<OrdinalParameter> found,
                                           CubinKernel& kernel) {
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
    kernel.parameters.reserve(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto& [ordinal, parameter] = found[i];
        if (ordinal != i) {
            return "parameter records skip or repeat number " + std::to_string(i);
        }
        if (std::uint64_t{parameter.offset} + parameter.size > kernel.parameter_bytes) {
            return "parameter " + std::to_string(i) + " (" + std::to_string(parameter.size) +
                   " bytes at offset " + std::to_string(parameter.offset) +
                   ") is outside the parameter block of " + std::to_string(kernel.parameter_bytes) +
                   " bytes";
        }
        kernel.parameters.push_back(parameter);
    }
    return std::nullopt;
}

} // namespace

Result<std::unordered_map<std::uint32_t, SymbolResources>> read_symbol_resources(Bytes nv_info) {
    std::unordered_map<std::uint32_t, SymbolResources> resources;
    const bool whole = for_each_attribute(nv_info, [&](const CubinAttribute& attribute) {
        if (attribute.payload.size() < 8) return;
        const std::uint32_t symbol = attribute.word(0);
        const std::uint32_t value = attribute.word(1);
        switch (attribute.code) {
        case kRegisterCount:
            resources[symbol].registers = value;
            break;
        case kFrameSize:
            resources[symbol].frame_bytes = value;
            break;
        default:
            break;
        }
    });
    if (!whole) return Failure{"section .nv.info ends inside a record"};
    return resources;
}

Result<int> read_kernel_attributes(Bytes nv_info, CubinKernel& kernel) {
    std::vector<OrdinalParameter> parameters;
    int toolkit = 0;
    const bool whole = for_each_attribute(nv_info, [&](const CubinAttribute& attribute) {
        switch (attribute.code) {
        case kMaxThreads:
            kernel.max_threads = three_words(attribute);
            break;
        case kRequiredThreads:
            kernel.required_threads = three_words(attribute);
            break;
        case kClusterDimensions:
            kernel.required_cluster = three_words(attribute);
            break;
        case kExplicitCluster:
            kernel.explicit_cluster = true;
            break;
        case kBlocksAreClusters:
            kernel.blocks_are_clusters = true;
            break;
        case kToolkit:
            toolkit = static_cast<int>(attribute.word(0) & 0xffff);
            break;
        case kMaxClusterRank:
            kernel.max_cluster_rank = attribute.word(0);
            break;
        case kMaxRegisters:
            kernel.max_registers = attribute.value;
            break;
        case kParameterBytes:
            kernel.parameter_bytes = attribute.value;
            break;
        case kBarrierCount:
            kernel.barriers = attribute.value & 0xff;
            break;
        // Words: index; ordinal and offset, 16 bits each; size, above or below flags.
        case kParameterInfo:
            parameters.push_back(
                {attribute.word(1) & 0xffff, {attribute.word(1) >> 16, attribute.word(2) >> 18}});
            break;
        case kWideParameterInfo:
            parameters.push_back({attribute.word(1) & 0xffff,
                                  {attribute.word(1) >> 16, attribute.word(2) & 0xffff}});
            break;
        default:
            break;
        }
    });
    if (!whole) return Failure{"section .nv.info." + kernel.name + " ends inside a record"};
    if (kernel.required_threads[0] != 0) {
        kernel.max_threads_per_block = product(kernel.required_threads);
    } else if (kernel.max_threads[0] != 0) {
        kernel.max_threads_per_block = product(kernel.max_threads);
    }
    if (auto problem = take_parameters(std::move(parameters), kernel)) return Failure{*problem};
    return toolkit;
}

} // namespace cudamod::formats
