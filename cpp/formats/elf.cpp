#include "formats/elf.h"

#include <algorithm>

namespace cudamod::formats {
namespace {

constexpr std::uint32_t kSymbolTable = 2;
constexpr std::uint32_t kStringTable = 3;
constexpr std::uint32_t kNoBits = 8;
constexpr std::uint16_t kExtendedIndex = 0xffff;

struct FileHeader {
    std::uint8_t ident[16];
    std::uint16_t type;
    std::uint16_t machine;
    std::uint32_t version;
    std::uint64_t entry;
    std::uint64_t program_offset;
    std::uint64_t section_offset;
    std::uint32_t flags;
    std::uint16_t header_size;
    std::uint16_t program_size;
    std::uint16_t program_count;
    std::uint16_t section_size;
    std::uint16_t section_count;
    std::uint16_t names_index;
};
static_assert(sizeof(FileHeader) == 64);

struct SectionHeader {
    std::uint32_t name;
    std::uint32_t type;
    std::uint64_t flags;
    std::uint64_t address;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint32_t link;
    std::uint32_t info;
    std::uint64_t alignment;
    std::uint64_t entry_size;
};
static_assert(sizeof(SectionHeader) == 64);

struct SymbolRecord {
    std::uint32_t name;
    std::uint8_t info;
    std::uint8_t other;
    std::uint16_t section;
    std::uint64_t value;
    std::uint64_t size;
};
static_assert(sizeof(SymbolRecord) == 24);

struct Tables {
    FileHeader header;
    std::uint64_t section_count = 0;
    std::uint64_t names_index = 0;
};

Failure bad_elf(std::string what) {
    return Failure{"ELF image: " + std::move(what)};
}

std::string range(std::uint64_t offset, std::uint64_t size, std::uint64_t total) {
    return std::to_string(size) + " bytes at offset " + std::to_string(offset) +
           " reach beyond the end (" + std::to_string(total) + " bytes)";
}

Result<Tables> read_tables(Bytes bytes) {
    auto header = read<FileHeader>(bytes, 0);
    if (!header) return bad_elf("truncated header (" + std::to_string(bytes.size()) + " bytes)");
    static constexpr std::uint8_t kMagic[6] = {0x7f, 'E', 'L', 'F', 2 /* 64 bit */, 1 /* little */};
    if (!std::equal(std::begin(kMagic), std::end(kMagic), header->ident)) {
        return bad_elf("not a little-endian 64-bit ELF file");
    }
    Tables tables{*header, header->section_count, header->names_index};
    if (header->section_offset == 0) {
        tables.section_count = 0;
        return tables;
    }
    if (header->section_size != sizeof(SectionHeader)) {
        return bad_elf("section headers of " + std::to_string(header->section_size) +
                       " bytes, not 64");
    }
    if (header->section_count == 0 || header->names_index == kExtendedIndex) {
        auto first = read<SectionHeader>(bytes, header->section_offset);
        if (!first) {
            return bad_elf("section header table: " +
                           range(header->section_offset, 64, bytes.size()));
        }
        if (header->section_count == 0) tables.section_count = first->size;
        if (header->names_index == kExtendedIndex) tables.names_index = first->link;
    }
    if (tables.section_count > bytes.size() / sizeof(SectionHeader) ||
        !slice(bytes, header->section_offset, tables.section_count * sizeof(SectionHeader))) {
        return bad_elf("section header table: " + std::to_string(tables.section_count) +
                       " entries at offset " + std::to_string(header->section_offset) +
                       " reach beyond the end (" + std::to_string(bytes.size()) + " bytes)");
    }
    return tables;
}

SectionHeader section_header(Bytes bytes, const Tables& tables, std::uint64_t index) {
    return *read<SectionHeader>(bytes,
                                tables.header.section_offset + index * sizeof(SectionHeader));
}

Result<std::vector<ElfSymbol>> read_symbols(const std::vector<ElfSection>& sections,
                                            const ElfSection& table) {
    std::vector<ElfSymbol> symbols;
    if (table.link >= sections.size()) {
        return bad_elf("symbol table names section " + std::to_string(table.link) + " of " +
                       std::to_string(sections.size()) + " for its strings");
    }
    const Bytes strings = sections[table.link].bytes;
    const std::size_t count = table.bytes.size() / sizeof(SymbolRecord);
    symbols.reserve(count);
    // Names may share their tails, but a file that repeats long ones without end is an attack on
    // our memory.
    std::uint64_t name_budget = 8 * std::uint64_t{strings.size()} + 64 * std::uint64_t{count};
    for (std::size_t i = 0; i < count; ++i) {
        auto record = *read<SymbolRecord>(table.bytes, i * sizeof(SymbolRecord));
        std::string_view name;
        if (record.name != 0) {
            auto text = read_string(strings, record.name);
            if (!text) {
                return bad_elf("name of symbol " + std::to_string(i) + " at offset " +
                               std::to_string(record.name) + " is outside the string table");
            }
            name = *text;
            if (name.size() > name_budget) return bad_elf("symbols repeat the same long names");
            name_budget -= name.size();
        }
        symbols.push_back({name, static_cast<std::uint8_t>(record.info & 15),
                           static_cast<std::uint8_t>(record.info >> 4), record.other,
                           record.section, record.value, record.size});
    }
    return symbols;
}

} // namespace

const ElfSection* Elf::find(std::string_view name) const {
    auto it = std::find_if(sections.begin(), sections.end(),
                           [&](const ElfSection& section) { return section.name == name; });
    return it == sections.end() ? nullptr : &*it;
}

Result<Elf> read_elf(Bytes bytes) {
    auto tables = read_tables(bytes);
    if (!tables) return tables.failure();
    const FileHeader& header = tables->header;
    Elf elf{header.type, header.machine, header.ident[7], header.ident[8], header.flags, {}, {}};
    elf.sections.reserve(static_cast<std::size_t>(tables->section_count));

    Bytes names;
    if (tables->names_index != 0 && tables->names_index < tables->section_count) {
        auto section = section_header(bytes, *tables, tables->names_index);
        // A cut-off file whose section headers are other memory's bytes.
        if (section.type != kStringTable) {
            return bad_elf("section " + std::to_string(tables->names_index) + " of type " +
                           std::to_string(section.type) + " is not the table of section names");
        }
        auto part = slice(bytes, section.offset, section.size);
        if (!part)
            return bad_elf("section names: " + range(section.offset, section.size, bytes.size()));
        names = *part;
    }
    const ElfSection* symbol_table = nullptr;
    std::uint64_t section_budget = 2 * std::uint64_t{bytes.size()};
    for (std::uint64_t i = 0; i < tables->section_count; ++i) {
        auto raw = section_header(bytes, *tables, i);
        auto name = read_string(names, raw.name).value_or(std::string_view{});
        Bytes contents;
        if (raw.type != kNoBits && raw.type != 0 && raw.size != 0) {
            auto part = slice(bytes, raw.offset, raw.size);
            if (!part) {
                return bad_elf("section '" + std::string(name) +
                               "': " + range(raw.offset, raw.size, bytes.size()));
            }
            contents = *part;
            if (raw.size > section_budget) return bad_elf("sections overlap");
            section_budget -= raw.size;
        }
        elf.sections.push_back({name, raw.type, raw.flags, raw.link, raw.info, raw.offset, raw.size,
                                raw.entry_size, contents});
        if (raw.type == kSymbolTable && !symbol_table) symbol_table = &elf.sections.back();
    }
    if (symbol_table) {
        auto symbols = read_symbols(elf.sections, *symbol_table);
        if (!symbols) return symbols.failure();
        elf.symbols = std::move(*symbols);
    }
    return elf;
}

Result<std::size_t> elf_size(Bytes bytes) {
    auto tables = read_tables(bytes);
    if (!tables) return tables.failure();
    const FileHeader& header = tables->header;
    std::uint64_t end = sizeof(FileHeader);
    auto extend = [&](std::uint64_t offset, std::uint64_t size) {
        if (size > UINT64_MAX - offset) return false;
        end = std::max(end, offset + size);
        return true;
    };
    bool fits = extend(header.section_offset, tables->section_count * sizeof(SectionHeader));
    if (header.program_offset != 0) {
        fits = fits && extend(header.program_offset,
                              std::uint64_t{header.program_size} * header.program_count);
    }
    for (std::uint64_t i = 0; i < tables->section_count && fits; ++i) {
        auto raw = section_header(bytes, *tables, i);
        if (raw.type != kNoBits && raw.type != 0) fits = extend(raw.offset, raw.size);
    }
    if (!fits) return bad_elf("a section's offset and size overflow");
    return static_cast<std::size_t>(end);
}

} // namespace cudamod::formats
