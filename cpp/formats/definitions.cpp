#include "formats/definitions.h"

#include "formats/archive.h"
#include "formats/elf.h"
#include "formats/fatbin.h"
#include "formats/ptx_tokens.h"

#include <cstdint>
#include <optional>

namespace cudamod::formats {
namespace {

constexpr std::uint8_t kGlobalBinding = 1, kObjectSymbol = 1, kFunctionSymbol = 2;
constexpr std::uint8_t kFirstCudaSymbol = 10, kLastCudaSymbol = 13; // textures to variables
constexpr std::uint16_t kLastSection = 0xfeff;

using DefinedNames = std::vector<std::string>;

/// The names of what a PTX text defines `.visible`: entries, functions with a body, variables.
void define_from_ptx(std::string_view text, DefinedNames& names) {
    PtxTokens tokens(text.substr(0, text.find('\0')));
    int depth = 0;
    while (!tokens.at_end()) {
        const PtxToken token = tokens.take();
        if (token.is("{")) ++depth;
        if (token.is("}")) --depth;
        if (depth != 0 || !token.is(".visible")) continue;
        std::string_view name;
        bool function = false, defined = false;
        for (int inside = 0; !tokens.at_end();) {
            const PtxToken& next = tokens.peek();
            if (inside == 0 && (next.is("{") || next.is(";") || next.is("="))) {
                defined = !function || next.is("{");
                break;
            }
            inside += next.is("(") || next.is("[");
            inside -= next.is(")") || next.is("]");
            function |= next.is(".entry") || next.is(".func");
            if (inside == 0 && name.empty() && next.kind == PtxToken::Kind::Word) name = next.text;
            tokens.take();
        }
        if (defined && !name.empty()) names.emplace_back(name);
    }
}

/// The names of a cubin's global symbols; false when it is not relocatable.
bool define_from_cubin(Bytes image, DefinedNames& names) {
    const auto elf = read_elf(image);
    if (!elf || elf->machine != kElfMachineCuda) return true;
    if (elf->type != kElfTypeRelocatable) return false;
    for (const ElfSymbol& symbol : elf->symbols) {
        const bool code_or_data =
            symbol.type == kFunctionSymbol || symbol.type == kObjectSymbol ||
            (symbol.type >= kFirstCudaSymbol && symbol.type <= kLastCudaSymbol);
        if (symbol.binding == kGlobalBinding && code_or_data && symbol.section != 0 &&
            symbol.section <= kLastSection)
            names.emplace_back(symbol.name);
    }
    return true;
}

/// The machine code that a linker would take for the architecture, else the PTX.
const FatbinEntry* choose_entry(const Fatbin& fatbin, int sm) {
    const FatbinEntry* best = nullptr;
    for (const FatbinEntry& entry : fatbin.entries) {
        const bool machine = entry.kind == FatbinKind::Elf && entry.sm / 10 == sm / 10;
        if ((!machine && entry.kind != FatbinKind::Ptx) || entry.sm > sm) continue;
        const bool best_machine = best && best->kind == FatbinKind::Elf;
        if (!best || (machine && !best_machine) || (machine == best_machine && entry.sm > best->sm))
            best = &entry;
    }
    return best;
}

bool define_from_fatbin(Bytes image, int sm, DefinedNames& names) {
    const auto fatbin = read_fatbin(image);
    if (!fatbin) return true;
    const FatbinEntry* entry = choose_entry(*fatbin, sm);
    if (!entry) return true;
    const auto code = extract(*entry);
    if (!code) return true;
    if (entry->kind == FatbinKind::Elf) return define_from_cubin(*code, names);
    define_from_ptx(as_text(*code), names);
    return true;
}

/// How many fatbins an object embeds, and how many of them can be linked.
struct FatbinCounts {
    int all = 0, linkable = 0;
};

void define_from_object(Bytes image, int sm, DefinedNames& names, FatbinCounts& counts) {
    const auto fatbins = find_embedded_fatbins(image);
    if (!fatbins) return;
    for (const Bytes fatbin : *fatbins) {
        ++counts.all;
        counts.linkable += define_from_fatbin(fatbin, sm, names);
    }
}

} // namespace

Definitions definitions_of(std::string_view kind, Bytes image, int sm) {
    Definitions found;
    FatbinCounts counts;
    if (kind == "ptx")
        define_from_ptx(as_text(image), found.names);
    else if (kind == "cubin")
        found.whole = !define_from_cubin(image, found.names);
    else if (kind == "fatbin")
        found.whole = !define_from_fatbin(image, sm, found.names);
    else if (kind == "object")
        define_from_object(image, sm, found.names, counts);
    else if (kind == "library") {
        const auto members = read_archive(image);
        if (members) {
            for (const ArchiveMember& member : *members)
                define_from_object(member.bytes, sm, found.names, counts);
        }
    }
    found.whole |= counts.all && !counts.linkable;
    return found;
}

} // namespace cudamod::formats
