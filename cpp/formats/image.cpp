#include "formats/image.h"

#include "formats/elf.h"
#include "formats/fatbin.h"

#include <algorithm>

namespace cudamod::formats {
namespace {

constexpr std::uint32_t kElfMagic = 0x464c457f;
constexpr std::uint32_t kLtoIrMagic = 0x7f4e43ed;
constexpr std::string_view kArchiveMagic = "!<arch>\n";
constexpr std::size_t kElfHeaderBytes = 64;

bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Drops blanks, comments and a byte order mark from the front.
std::string_view skip_to_code(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    for (;;) {
        while (!text.empty() && is_space(text.front()))
            text.remove_prefix(1);
        const char* end = nullptr;
        if (text.starts_with("//")) {
            end = "\n";
        } else if (text.starts_with("/*")) {
            end = "*/";
        } else {
            return text;
        }
        auto at = text.find(end, 2);
        if (at == text.npos) return {};
        text.remove_prefix(at + std::string_view(end).size());
    }
}

bool is_ptx(std::string_view text) {
    constexpr std::string_view kDirective = ".version";
    text = skip_to_code(text);
    return text.starts_with(kDirective) && text.size() > kDirective.size() &&
           is_space(text[kDirective.size()]);
}

Failure unknown_kind() {
    return Failure{"image: neither PTX, cubin, fatbin nor LTO-IR by its first bytes"};
}

/// As many bytes of memory as the image's own headers vouch for, for the tables of an ELF file.
Result<std::size_t> trusted_elf_size(const std::byte* image, std::size_t limit) {
    const Bytes header(image, kElfHeaderBytes);
    const auto table = *read<std::uint64_t>(header, 40);
    const std::uint64_t bytes_each = *read<std::uint16_t>(header, 58);
    std::uint64_t count = *read<std::uint16_t>(header, 60);
    if (table > limit || limit - table < bytes_each) {
        return Failure{"ELF image: section headers at offset " + std::to_string(table) +
                       " are beyond the limit of " + std::to_string(limit) + " bytes"};
    }
    if (count == 0 && table != 0) {
        count = *read<std::uint64_t>(Bytes(image + table, bytes_each), 32);
    }
    if (bytes_each != 0 && count > (limit - table) / bytes_each) {
        return Failure{"ELF image: " + std::to_string(count) +
                       " section headers reach beyond the limit of " + std::to_string(limit) +
                       " bytes"};
    }
    const auto known = static_cast<std::size_t>(table + count * bytes_each);
    return elf_size(Bytes(image, std::max(known, kElfHeaderBytes)));
}

} // namespace

const char* name(ImageKind kind) {
    switch (kind) {
    case ImageKind::Unknown:
        return "unknown";
    case ImageKind::Ptx:
        return "PTX";
    case ImageKind::Cubin:
        return "cubin";
    case ImageKind::Fatbin:
        return "fatbin";
    case ImageKind::FatbinWrapper:
        return "fatbin wrapper";
    case ImageKind::LtoIr:
        return "LTO-IR";
    case ImageKind::Object:
        return "host object";
    case ImageKind::Archive:
        return "archive";
    }
    return "unknown";
}

ImageKind sniff(Bytes image) {
    if (auto magic = read<std::uint32_t>(image, 0)) {
        switch (*magic) {
        case kElfMagic:
            return read<std::uint16_t>(image, 18) == kElfMachineCuda ? ImageKind::Cubin
                                                                     : ImageKind::Object;
        case kFatbinMagic:
            return ImageKind::Fatbin;
        case kFatbinWrapperMagic:
            return ImageKind::FatbinWrapper;
        case kLtoIrMagic:
            return ImageKind::LtoIr;
        default:
            break;
        }
    }
    const auto text = as_text(image);
    if (text.starts_with(kArchiveMagic)) return ImageKind::Archive;
    if (is_ptx(text.substr(0, text.find('\0')))) return ImageKind::Ptx;
    return ImageKind::Unknown;
}

Result<std::size_t> image_size(Bytes image) {
    const ImageKind kind = sniff(image);
    Result<std::size_t> size = unknown_kind();
    switch (kind) {
    case ImageKind::Ptx:
        return std::min(as_text(image).find('\0'), image.size());
    case ImageKind::Cubin:
    case ImageKind::Object:
        size = elf_size(image);
        break;
    case ImageKind::Fatbin:
        size = fatbin_size(image);
        break;
    case ImageKind::LtoIr:
        return Failure{"LTO-IR image: does not say how long it is"};
    default:
        break;
    }
    if (size && *size > image.size()) {
        return Failure{std::string(name(kind)) + " image: says it has " + std::to_string(*size) +
                       " bytes, but only " + std::to_string(image.size()) + " are there"};
    }
    return size;
}

Result<std::size_t> unbounded_image_size(const void* image, std::size_t limit) {
    if (!image) return Failure{"image: null pointer"};
    const auto* bytes = static_cast<const std::byte*>(image);
    // Text may end anywhere, so only as many bytes are looked at as are known not to lie behind a
    // NUL.
    std::size_t known = 0;
    while (known < sizeof(std::uint32_t) && known < limit && bytes[known] != std::byte{0})
        ++known;
    Result<std::size_t> size = unknown_kind();
    switch (sniff(Bytes(bytes, known))) {
    case ImageKind::Object: // which of the two needs the whole header
        size = sniff(Bytes(bytes, kElfHeaderBytes)) == ImageKind::Cubin
                   ? trusted_elf_size(bytes, limit)
                   : unknown_kind();
        break;
    case ImageKind::Fatbin:
        size = fatbin_size(Bytes(bytes, kFatbinHeaderBytes));
        break;
    case ImageKind::LtoIr:
        return Failure{"LTO-IR image: does not say how long it is"};
    case ImageKind::FatbinWrapper:
        return unknown_kind();
    default: {
        const void* nul = std::memchr(image, 0, limit);
        if (!nul) break;
        const auto length = static_cast<std::size_t>(static_cast<const std::byte*>(nul) - bytes);
        if (sniff(Bytes(bytes, length)) == ImageKind::Ptx) size = length;
        break;
    }
    }
    if (size && *size > limit) {
        return Failure{"image: says it has " + std::to_string(*size) +
                       " bytes, more than the limit of " + std::to_string(limit)};
    }
    return size;
}

} // namespace cudamod::formats
