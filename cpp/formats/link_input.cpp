#include "formats/link_input.h"

#include "formats/elf.h"
#include "formats/fatbin.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace cudamod::formats {
namespace {

constexpr std::uint32_t kSymbolSection = 2, kRelaSection = 4, kRelSection = 9;
constexpr std::uint64_t kSymbolBytes = 24, kRelaBytes = 24, kRelBytes = 16;
constexpr std::uint16_t kFirstReservedIndex = 0xff00;
constexpr std::string_view kElfBegin = "\x7f"
                                       "ELF";
constexpr std::string_view kArchiveBegin = "!<arch>\n";
constexpr std::string_view kBitcodeBegin = "BC\xc0\xde";

struct RelocationEntry {
    std::uint64_t offset, info;
};

std::string damage_of_relocations(const Elf& elf, const ElfSection& section) {
    const std::uint64_t bytes = section.type == kRelaSection ? kRelaBytes : kRelBytes;
    if (section.entry_size != bytes) return "has entries of another size";
    const std::uint64_t symbols = elf.sections[section.link].size / kSymbolBytes;
    const std::uint64_t target =
        section.info < elf.sections.size() ? elf.sections[section.info].size : 0;
    for (std::uint64_t at = 0; at + bytes <= section.bytes.size(); at += bytes) {
        const auto entry = *read<RelocationEntry>(section.bytes, at);
        if (entry.info >> 32 >= std::max<std::uint64_t>(symbols, 1) ||
            entry.offset >= std::max<std::uint64_t>(target, 1))
            return "has a relocation that leads nowhere";
    }
    return {};
}

std::string damage_of_elf(Bytes image) {
    const auto elf = read_elf(image);
    if (!elf) return elf.reason();
    if (elf->sections.empty()) return "ELF image: it has no sections";
    for (std::size_t index = 0; index < elf->sections.size(); ++index) {
        const ElfSection& section = elf->sections[index];
        std::string damage;
        if (section.link >= elf->sections.size()) {
            damage = "refers to section " + std::to_string(section.link);
        } else if (section.type == kSymbolSection && section.entry_size != kSymbolBytes) {
            damage = "has entries of another size";
        } else if (section.type == kRelaSection || section.type == kRelSection) {
            damage = damage_of_relocations(*elf, section);
        }
        if (!damage.empty())
            return "ELF image: section " + std::to_string(index) + " '" +
                   std::string(section.name) + "' " + damage;
    }
    for (std::size_t index = 0; index < elf->symbols.size(); ++index) {
        const std::uint16_t section = elf->symbols[index].section;
        if (section >= elf->sections.size() && section < kFirstReservedIndex)
            return "ELF image: symbol " + std::to_string(index) + " lies in section " +
                   std::to_string(section);
    }
    return {};
}

std::string damage_of_archive(Bytes image) {
    if (!as_text(image).starts_with(kArchiveBegin)) return "archive: wrong magic number";
    std::uint64_t at = kArchiveBegin.size();
    while (at < image.size()) {
        const std::string member = "archive: the member at byte " + std::to_string(at);
        const auto header = slice(image, at, 60);
        if (!header || as_text(*header).substr(58) != "`\n") return member + " has no header";
        const std::string_view digits = as_text(*header).substr(48, 10);
        std::uint64_t size = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), size).ec != std::errc())
            return member + " has no size";
        const auto content = slice(image, at + 60, size);
        if (!content) return member + " is cut off";
        if (as_text(*content).starts_with(kElfBegin)) {
            const std::string damage = damage_of_elf(*content);
            if (!damage.empty()) return member + ": " + damage;
        }
        at += 60 + round_up(size, 2);
    }
    return {};
}

std::string damage_of_fatbin(Bytes image) {
    const auto fatbin = read_fatbin(image);
    if (!fatbin) return fatbin.reason();
    for (const FatbinEntry& entry : fatbin->entries) {
        if (entry.kind == FatbinKind::LtoIr) continue;
        const auto code = extract(entry);
        if (!code) return code.reason();
        if (entry.kind != FatbinKind::Elf) continue;
        const std::string damage = damage_of_elf(*code);
        if (!damage.empty()) return "fatbin: sm_" + std::to_string(entry.sm) + ": " + damage;
    }
    return {};
}

/// The blocks that a bitcode file is made of, each of which says how many words it has.
std::string damage_of_bitcode(Bytes image) {
    std::uint64_t at = 32; // in bits
    const std::uint64_t end = std::uint64_t{image.size()} * 8;
    const auto bit = [&](std::uint64_t position) {
        return position < end &&
               (static_cast<unsigned>(image[position / 8]) >> (position % 8) & 1) != 0;
    };
    const auto skip_number = [&](unsigned width) {
        while (bit(at + width - 1))
            at += width;
        at += width;
    };
    while (at + 32 <= end) {
        if (!bit(at) || bit(at + 1))
            return "bitcode: there is no block at byte " + std::to_string(at / 8);
        at += 2;
        skip_number(8); // which block
        skip_number(4); // the width of its abbreviations
        at = round_up(at, 32);
        const auto words = read<std::uint32_t>(image, at / 8);
        if (!words || !slice(image, at / 8 + 4, std::uint64_t{*words} * 4))
            return "bitcode: the block at byte " + std::to_string(at / 8) + " is cut off";
        at += 32 + std::uint64_t{*words} * 32;
    }
    return {};
}

} // namespace

std::string damage_of(std::string_view kind, Bytes image) {
    if (kind == "cubin" || kind == "object") return damage_of_elf(image);
    if (kind == "library") return damage_of_archive(image);
    if (kind == "fatbin") return damage_of_fatbin(image);
    if (kind == "nvvm" && as_text(image).starts_with(kBitcodeBegin))
        return damage_of_bitcode(image);
    return {};
}

} // namespace cudamod::formats
