#include "formats/contents.h"

#include "formats/archive.h"
#include "formats/cubin.h"
#include "formats/ptx_header.h"

#include <utility>

namespace cudamod::formats {
namespace {

using Parts = std::vector<CodePart>;

void read_ptx(std::string_view text, CodePart& part) {
    auto header = read_ptx_header(text);
    if (!header) {
        part.reason = header.reason();
        return;
    }
    part.sm = header->sm;
    part.suffix = header->suffix;
    part.kernels.emplace();
    for (const PtxEntry& entry : header->entries)
        part.kernels->push_back(entry.name);
}

void read_cubin(Bytes image, CodePart& part) {
    auto cubin = formats::read_cubin(image);
    if (!cubin) {
        part.reason = cubin.reason();
        return;
    }
    part.sm = cubin->sm;
    part.suffix = cubin->suffix;
    part.relocatable = cubin->relocatable;
    part.kernels.emplace();
    for (const CubinKernel& kernel : cubin->kernels)
        part.kernels->push_back(kernel.name);
}

void read_code(Bytes image, CodePart& part) {
    if (part.kind == ImageKind::Ptx)
        read_ptx(as_text(image), part);
    else if (part.kind == ImageKind::Cubin)
        read_cubin(image, part);
    else
        part.reason = "the kernels of " + std::string(name(part.kind)) + " can't be read";
}

CodePart part_of(const FatbinEntry& entry) {
    CodePart part;
    part.kind = entry.kind == FatbinKind::Ptx     ? ImageKind::Ptx
                : entry.kind == FatbinKind::Elf   ? ImageKind::Cubin
                : entry.kind == FatbinKind::LtoIr ? ImageKind::LtoIr
                                                  : ImageKind::Unknown;
    part.compression = entry.compression;
    part.size = entry.payload.size();
    auto image = extract(entry);
    if (image)
        read_code(*image, part);
    else
        part.reason = image.reason();
    // The entry's own word on the architecture counts: it is what a driver chooses by.
    part.sm = entry.sm;
    part.suffix = entry.suffix;
    return part;
}

std::optional<Failure> add_fatbin(Bytes image, Parts& parts) {
    auto fatbin = read_fatbin(image);
    if (!fatbin) return fatbin.failure();
    for (const FatbinEntry& entry : fatbin->entries)
        parts.push_back(part_of(entry));
    return std::nullopt;
}

std::optional<Failure> add(Bytes image, Parts& parts) {
    const ImageKind kind = sniff(image);
    switch (kind) {
    case ImageKind::Ptx:
    case ImageKind::Cubin:
    case ImageKind::LtoIr: {
        CodePart part;
        part.kind = kind;
        part.size = image.size();
        read_code(image, part);
        if (!part.kernels && kind != ImageKind::LtoIr) return Failure{part.reason};
        parts.push_back(std::move(part));
        return std::nullopt;
    }
    case ImageKind::Fatbin:
        return add_fatbin(image, parts);
    case ImageKind::Object: {
        auto fatbins = find_embedded_fatbins(image);
        if (!fatbins) return fatbins.failure();
        for (Bytes fatbin : *fatbins)
            if (auto failure = add_fatbin(fatbin, parts)) return failure;
        return std::nullopt;
    }
    default:
        return Failure{"image: neither PTX, cubin, fatbin, LTO-IR, object nor archive by its first "
                       "bytes"};
    }
}

using Fatbins = std::vector<EmbeddedFatbin>;

std::optional<Failure> add_fatbins(Bytes image, const std::string& member, Fatbins& fatbins) {
    const ImageKind kind = sniff(image);
    if (kind == ImageKind::Fatbin) {
        fatbins.push_back({member, image});
    } else if (kind == ImageKind::Object) {
        auto embedded = find_embedded_fatbins(image);
        if (!embedded) return embedded.failure();
        for (Bytes fatbin : *embedded)
            fatbins.push_back({member, fatbin});
    }
    return std::nullopt;
}

} // namespace

Result<std::vector<EmbeddedFatbin>> find_fatbins(Bytes image) {
    Fatbins fatbins;
    const ImageKind kind = sniff(image);
    if (kind == ImageKind::Archive) {
        auto members = read_archive(image);
        if (!members) return members.failure();
        for (const ArchiveMember& member : *members)
            if (auto failure = add_fatbins(member.bytes, member.name, fatbins))
                return Failure{"member '" + member.name + "': " + failure->reason};
        return fatbins;
    }
    if (kind != ImageKind::Fatbin && kind != ImageKind::Object)
        return Failure{std::string("image: ") + name(kind) + ", which embeds no fatbin"};
    if (auto failure = add_fatbins(image, {}, fatbins)) return *failure;
    return fatbins;
}

Result<std::vector<CodePart>> read_contents(Bytes image) {
    Parts parts;
    if (sniff(image) != ImageKind::Archive) {
        if (auto failure = add(image, parts)) return *failure;
        return parts;
    }
    auto members = read_archive(image);
    if (!members) return members.failure();
    for (const ArchiveMember& member : *members) {
        if (sniff(member.bytes) == ImageKind::Unknown) continue;
        const std::size_t before = parts.size();
        if (auto failure = add(member.bytes, parts))
            return Failure{"member '" + member.name + "': " + failure->reason};
        for (std::size_t i = before; i < parts.size(); ++i)
            parts[i].member = member.name;
    }
    return parts;
}

} // namespace cudamod::formats
