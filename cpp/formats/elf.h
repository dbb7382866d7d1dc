#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

#include <string_view>
#include <vector>

namespace cudamod::formats {

struct ElfSection {
    std::string_view name;
    std::uint32_t type;
    std::uint64_t flags;
    std::uint32_t link;
    std::uint32_t info;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t entry_size;
    Bytes bytes; ///< empty for a section without file contents (SHT_NOBITS)
};

struct ElfSymbol {
    std::string_view name;
    std::uint8_t type;
    std::uint8_t binding;
    std::uint8_t other;
    std::uint16_t section;
    std::uint64_t value;
    std::uint64_t size;
};

/// A little-endian ELF64 file: views into the bytes that it was read from, which must outlive it.
struct Elf {
    std::uint16_t type;
    std::uint16_t machine;
    std::uint8_t os_abi;
    std::uint8_t abi_version;
    std::uint32_t flags;
    std::vector<ElfSection> sections;
    std::vector<ElfSymbol> symbols; ///< of .symtab, index as in the file

    const ElfSection* find(std::string_view name) const;
};

inline constexpr std::uint16_t kElfMachineCuda = 190;
inline constexpr std::uint16_t kElfTypeRelocatable = 1;

/// Every section with its bytes and the symbol table; fails when a table or a section lies outside
/// the bytes.
Result<Elf> read_elf(Bytes bytes);

/// The end of the last table or section; reads the ELF and section headers alone.
Result<std::size_t> elf_size(Bytes bytes);

} // namespace cudamod::formats
