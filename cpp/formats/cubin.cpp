#include "formats/cubin.h"

#include "formats/cubin_attributes.h"
#include "formats/elf.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace cudamod::formats {
namespace {

constexpr std::uint8_t kSymbolObject = 1;
constexpr std::uint8_t kSymbolFunction = 2;
constexpr std::uint8_t kBindingLocal = 0;
constexpr std::uint8_t kOtherEntry = 0x10;   // st_other of a kernel
constexpr std::uint8_t kOtherManaged = 0x04; // st_other of a __managed__ variable
constexpr std::uint16_t kUndefined = 0;
constexpr std::uint32_t kReservedShared = 1024; // per block, counted in the section from sm_90 on
constexpr int kBarriersShift = 20;              // in sh_flags of .text.NAME, ABI 7
constexpr std::uint8_t kCompatArchitectureSpecific = 0x09;

using SectionIndex = std::unordered_map<std::string_view, const ElfSection*>;

Failure bad_cubin(std::string what) {
    return Failure{"cubin: " + std::move(what)};
}

const ElfSection* find(const SectionIndex& index, std::string_view name) {
    auto it = index.find(name);
    return it == index.end() ? nullptr : it->second;
}

std::uint32_t clamp32(std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

/// Virtual architecture and toolkit; ptxas's command line, which names the suffix.
void read_notes(const SectionIndex& index, Cubin& cubin) {
    constexpr std::size_t kNoteHeader = 24; // three words and "NVIDIA Corp\0"
    if (const auto* info = find(index, ".note.nv.cuinfo")) {
        cubin.virtual_sm = read<std::uint16_t>(info->bytes, kNoteHeader + 2).value_or(0);
        cubin.toolkit = static_cast<int>(
            clamp32(read<std::uint32_t>(info->bytes, kNoteHeader + 4).value_or(0)) & 0x7fffffff);
    }
    if (const auto* compat = find(index, ".nv.compat")) {
        for_each_attribute(compat->bytes, [&](const CubinAttribute& attribute) {
            if (attribute.code == kCompatArchitectureSpecific && attribute.value == 1) {
                cubin.suffix = 'a';
            }
        });
    }
    if (const auto* tools = find(index, ".note.nv.tkinfo"); tools && !cubin.suffix) {
        const auto text = as_text(tools->bytes);
        const auto option = "-arch sm_" + std::to_string(cubin.sm);
        const auto at = text.find(option);
        if (at != text.npos && at + option.size() < text.size()) {
            const char suffix = text[at + option.size()];
            if (suffix == 'a' || suffix == 'f') cubin.suffix = suffix;
        }
    }
}

CubinVariable make_variable(const ElfSymbol& symbol, const ElfSection& section) {
    const std::uint64_t offset = symbol.value;
    CubinVariable variable{std::string(symbol.name),
                           symbol.size,
                           section.name == ".nv.constant3" ? VariableSpace::Constant
                                                           : VariableSpace::Global,
                           offset,
                           symbol.binding != kBindingLocal,
                           (symbol.other & kOtherManaged) != 0,
                           {}};
    if (auto bytes = slice(section.bytes, offset, symbol.size)) {
        const bool zeros = std::all_of(bytes->begin(), bytes->end(),
                                       [](std::byte b) { return b == std::byte{0}; });
        if (!zeros) variable.initial.assign(bytes->begin(), bytes->end());
    }
    return variable;
}

} // namespace

const CubinKernel* Cubin::find_kernel(std::string_view name) const {
    auto it = std::find_if(kernels.begin(), kernels.end(),
                           [&](const CubinKernel& kernel) { return kernel.name == name; });
    return it == kernels.end() ? nullptr : &*it;
}

const CubinVariable* Cubin::find_variable(std::string_view name) const {
    auto it = std::find_if(variables.begin(), variables.end(),
                           [&](const CubinVariable& variable) { return variable.name == name; });
    return it == variables.end() ? nullptr : &*it;
}

Result<Cubin> read_cubin(Bytes image) {
    auto elf = read_elf(image);
    if (!elf) return Failure{"cubin: " + elf.reason()};
    if (elf->machine != kElfMachineCuda) {
        return bad_cubin("ELF file for machine " + std::to_string(elf->machine) +
                         ", not 190 (CUDA)");
    }
    Cubin cubin;
    cubin.abi = elf->abi_version;
    if (cubin.abi == 8) {
        cubin.sm = (elf->flags >> 8) & 0xff;
    } else if (cubin.abi == 7) {
        cubin.sm = elf->flags & 0xff;
        cubin.virtual_sm = (elf->flags >> 16) & 0xff;
        cubin.suffix = (elf->flags & 0x800) ? 'a' : '\0';
    } else {
        return bad_cubin("ELF ABI version " + std::to_string(cubin.abi) +
                         " is not known (7 and 8 are)");
    }
    cubin.relocatable = elf->type == kElfTypeRelocatable;

    SectionIndex index;
    for (const auto& section : elf->sections)
        index.emplace(section.name, &section);
    read_notes(index, cubin);
    if (cubin.virtual_sm == 0) cubin.virtual_sm = cubin.sm;

    std::unordered_map<std::uint32_t, SymbolResources> resources;
    if (const auto* info = find(index, ".nv.info")) {
        auto table = read_symbol_resources(info->bytes);
        if (!table) return bad_cubin(table.reason());
        resources = std::move(*table);
    }
    std::unordered_set<std::string_view> names;
    std::uint64_t initial_budget = 2 * std::uint64_t{image.size()};
    const auto* constants = find(index, ".nv.constant3");
    for (std::size_t i = 0; i < elf->symbols.size(); ++i) {
        const ElfSymbol& symbol = elf->symbols[i];
        if (symbol.section == kUndefined || symbol.name.empty()) continue;
        if (symbol.type == kSymbolFunction && (symbol.other & kOtherEntry)) {
            if (!names.insert(symbol.name).second) continue; // found by name, so the first one wins
            CubinKernel kernel;
            kernel.name = symbol.name;
            if (auto it = resources.find(static_cast<std::uint32_t>(i)); it != resources.end()) {
                kernel.registers = it->second.registers;
                kernel.local_bytes = it->second.frame_bytes;
            }
            if (constants) kernel.constant_bytes = clamp32(constants->size);
            if (const auto* shared = find(index, ".nv.shared." + kernel.name)) {
                // An image that still has to be linked doesn't hold the reserved part yet.
                const std::uint32_t reserved =
                    cubin.sm >= 90 && !cubin.relocatable ? kReservedShared : 0;
                const std::uint32_t size = clamp32(shared->size);
                kernel.static_shared_bytes = size > reserved ? size - reserved : 0;
            }
            if (const auto* info = find(index, ".nv.info." + kernel.name)) {
                auto done = read_kernel_attributes(info->bytes, kernel);
                if (!done) return bad_cubin("kernel '" + kernel.name + "': " + done.reason());
                if (cubin.toolkit == 0) cubin.toolkit = *done;
            }
            if (cubin.abi == 7) {
                if (const auto* code = find(index, ".text." + kernel.name)) {
                    kernel.barriers = (code->flags >> kBarriersShift) & 0x7f;
                }
            }
            cubin.kernels.push_back(std::move(kernel));
        } else if (symbol.type == kSymbolObject && symbol.section < elf->sections.size()) {
            const ElfSection& section = elf->sections[symbol.section];
            if (section.name != ".nv.global" && section.name != ".nv.global.init" &&
                section.name != ".nv.constant3") {
                continue;
            }
            if (symbol.value > section.size || symbol.size > section.size - symbol.value) {
                return bad_cubin(
                    "variable '" + std::string(symbol.name) + "' (" + std::to_string(symbol.size) +
                    " bytes at offset " + std::to_string(symbol.value) + ") is outside section " +
                    std::string(section.name) + " of " + std::to_string(section.size) + " bytes");
            }
            const std::uint64_t initial = section.bytes.empty() ? 0 : symbol.size;
            if (initial > initial_budget) return bad_cubin("variables overlap");
            initial_budget -= initial;
            cubin.variables.push_back(make_variable(symbol, section));
        }
    }
    return cubin;
}

} // namespace cudamod::formats
