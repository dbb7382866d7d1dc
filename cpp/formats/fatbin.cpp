#include "formats/fatbin.h"

#include "formats/lz4.h"
#include "formats/zstd.h"

#include <algorithm>

namespace cudamod::formats {
namespace {

// Read off what nvcc 13.0 and fatbinary write for known inputs.
constexpr std::uint16_t kKindPtx = 1;
constexpr std::uint16_t kKindElf = 2;
constexpr std::uint16_t kKindLtoIr = 8;
constexpr std::uint64_t kFlagDebug = 0x2;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagArchitectureSpecific = 0x100000;
constexpr std::uint64_t kFlagFamilySpecific = 0x200000;

struct Header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_size;
    std::uint64_t entries_size;
};
static_assert(sizeof(Header) == kFatbinHeaderBytes);

struct EntryHeader {
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t header_size;
    std::uint64_t payload_size; ///< padded
    std::uint32_t compressed_size;
    std::uint32_t options_offset;
    std::uint16_t minor;
    std::uint16_t major;
    std::uint32_t sm;
    std::uint32_t identifier_offset;
    std::uint32_t identifier_size;
    std::uint64_t flags;
    std::uint64_t reserved;
    std::uint64_t uncompressed_size;
};
static_assert(sizeof(EntryHeader) == 64);

Failure bad_fatbin(std::string what) {
    return Failure{"fatbin: " + std::move(what)};
}

Result<Header> read_header(Bytes image) {
    auto header = read<Header>(image, 0);
    if (!header) return bad_fatbin("truncated header (" + std::to_string(image.size()) + " bytes)");
    if (header->magic != kFatbinMagic) return bad_fatbin("wrong magic number");
    if (header->version != 1) {
        return bad_fatbin("version " + std::to_string(header->version) + " is not known (1 is)");
    }
    if (header->header_size < sizeof(Header)) {
        return bad_fatbin("header of " + std::to_string(header->header_size) + " bytes");
    }
    return *header;
}

FatbinKind kind_of(std::uint16_t raw) {
    switch (raw) {
    case kKindPtx:
        return FatbinKind::Ptx;
    case kKindElf:
        return FatbinKind::Elf;
    case kKindLtoIr:
        return FatbinKind::LtoIr;
    default:
        return FatbinKind::Other;
    }
}

FatbinEntry make_entry(const EntryHeader& header, Bytes whole_header, Bytes payload) {
    FatbinEntry entry{};
    entry.kind = kind_of(header.kind);
    entry.raw_kind = header.kind;
    entry.sm = static_cast<int>(header.sm & 0xffff);
    entry.suffix = header.flags & kFlagArchitectureSpecific ? 'a'
                   : header.flags & kFlagFamilySpecific     ? 'f'
                                                            : '\0';
    entry.major = header.major;
    entry.minor = header.minor;
    entry.debug = header.flags & kFlagDebug;
    entry.compression = header.flags & kFlagZstd  ? Compression::Zstd
                        : header.flags & kFlagLz4 ? Compression::Lz4
                                                  : Compression::None;
    if (header.identifier_size != 0) {
        if (auto part = slice(whole_header, header.identifier_offset, header.identifier_size)) {
            entry.identifier = as_text(*part);
        }
    }
    entry.payload = payload;
    if (entry.compression != Compression::None) {
        entry.payload = payload.first(header.compressed_size);
        entry.uncompressed_size = header.uncompressed_size;
    }
    return entry;
}

/// Without the padding: a text ends at its NUL, an ELF file is left as it is.
void trim(FatbinKind kind, std::vector<std::byte>& image) {
    if (kind != FatbinKind::Ptx) return;
    image.erase(std::find(image.begin(), image.end(), std::byte{0}), image.end());
}

} // namespace

Result<std::size_t> fatbin_size(Bytes image) {
    auto header = read_header(image);
    if (!header) return header.failure();
    if (header->entries_size > SIZE_MAX - header->header_size) {
        return bad_fatbin("entries of " + std::to_string(header->entries_size) + " bytes");
    }
    return static_cast<std::size_t>(header->header_size + header->entries_size);
}

Result<Fatbin> read_fatbin(Bytes image) {
    auto header = read_header(image);
    if (!header) return header.failure();
    auto entries = slice(image, header->header_size, header->entries_size);
    if (!entries) {
        return bad_fatbin("says it has " + std::to_string(header->entries_size) +
                          " bytes of entries, but only " + std::to_string(image.size()) +
                          " bytes are there");
    }
    Fatbin fatbin;
    std::uint64_t at = 0;
    while (at < entries->size()) {
        const std::string which = "entry " + std::to_string(fatbin.entries.size());
        auto entry = read<EntryHeader>(*entries, at);
        if (!entry) return bad_fatbin(which + " has a truncated header");
        auto whole_header = slice(*entries, at, entry->header_size);
        if (entry->header_size < sizeof(EntryHeader) || !whole_header) {
            return bad_fatbin(which + " has a header of " + std::to_string(entry->header_size) +
                              " bytes");
        }
        at += entry->header_size;
        auto payload = slice(*entries, at, entry->payload_size);
        if (!payload) {
            return bad_fatbin(which + " has a payload of " + std::to_string(entry->payload_size) +
                              " bytes, which reaches beyond the end");
        }
        if ((entry->flags & (kFlagLz4 | kFlagZstd)) && entry->compressed_size > payload->size()) {
            return bad_fatbin(which + " has " + std::to_string(entry->compressed_size) +
                              " compressed bytes in a payload of " +
                              std::to_string(payload->size()));
        }
        at += entry->payload_size;
        fatbin.entries.push_back(make_entry(*entry, *whole_header, *payload));
    }
    return fatbin;
}

Result<std::vector<std::byte>> extract(const FatbinEntry& entry) {
    if (entry.kind == FatbinKind::LtoIr) {
        return bad_fatbin("LTO-IR for sm_" + std::to_string(entry.sm) +
                          " is encoded inside a fatbin and can't be read from it");
    }
    Result<std::vector<std::byte>> image =
        entry.compression == Compression::Lz4
            ? decompress_lz4(entry.payload, entry.uncompressed_size)
        : entry.compression == Compression::Zstd
            ? decompress_zstd(entry.payload, entry.uncompressed_size)
            : std::vector<std::byte>(entry.payload.begin(), entry.payload.end());
    if (!image) {
        return bad_fatbin("entry for sm_" + std::to_string(entry.sm) + ": " + image.reason());
    }
    trim(entry.kind, *image);
    return image;
}

Result<const void*> unwrap_fatbin(const void* wrapper) {
    struct Wrapper {
        std::uint32_t magic;
        std::uint32_t version;
        const void* fatbin;
        const void* others;
    };
    static_assert(sizeof(Wrapper) == 24);
    if (!wrapper) return bad_fatbin("null wrapper");
    std::uint32_t magic;
    std::memcpy(&magic, wrapper, sizeof(magic));
    if (magic != kFatbinWrapperMagic) return bad_fatbin("wrapper has a wrong magic number");
    Wrapper content;
    std::memcpy(&content, wrapper, sizeof(content));
    if (!content.fatbin) return bad_fatbin("wrapper points to nothing");
    return content.fatbin;
}

} // namespace cudamod::formats
