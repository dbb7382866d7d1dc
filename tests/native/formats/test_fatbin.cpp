#include "check.h"

#include "formats/cubin.h"
#include "formats/fatbin.h"
#include "formats/image.h"
#include "formats/ptx_header.h"

#include <cstring>

using namespace cudamod::formats;

// This program has the fatbins of two translation units, as nvcc would have put them there.
#define FATBIN ".incbin \"" TEST_DATA "/fatbins/saxpy.none.fatbin\"\n.balign 8\n"
asm(".pushsection .nv_fatbin,\"a\"\n.balign 8\n" FATBIN ".zero 8\n" FATBIN ".popsection\n");

namespace {

std::string data;

/// Each entry's kind, architecture and compression, as in "elf 90a lz4, ptx 90 zstd debug".
std::string describe(const Fatbin& fatbin) {
    std::string text;
    for (const auto& entry : fatbin.entries) {
        if (!text.empty()) text += ", ";
        text += entry.kind == FatbinKind::Ptx     ? "ptx "
                : entry.kind == FatbinKind::Elf   ? "elf "
                : entry.kind == FatbinKind::LtoIr ? "ltoir "
                                                  : "other ";
        text += std::to_string(entry.sm);
        if (entry.suffix) text += entry.suffix;
        if (entry.compression == Compression::Lz4) text += " lz4";
        if (entry.compression == Compression::Zstd) text += " zstd";
        if (entry.debug) text += " debug";
    }
    return text;
}

void check_entries(const std::string& name, const std::string& expected, bool extractable) {
    const std::string file = check::read_file(data + "/fatbins/" + name);
    auto fatbin = read_fatbin(as_bytes(file));
    CHECK_OK(fatbin);
    if (!fatbin) return;
    CHECK_EQ(describe(*fatbin), expected);
    for (const auto& entry : fatbin->entries) {
        auto image = extract(entry);
        if (!extractable) continue;
        CHECK_OK(image);
        if (!image) continue;
        if (entry.kind == FatbinKind::Elf) {
            auto cubin = read_cubin(*image);
            CHECK_OK(cubin);
            CHECK(cubin && cubin->sm == entry.sm && cubin->find_kernel("saxpy"));
        } else {
            auto ptx = read_ptx_header(as_text(*image));
            CHECK_OK(ptx);
            CHECK(ptx && ptx->sm == entry.sm && ptx->suffix == entry.suffix &&
                  ptx->find_entry("saxpy"));
            CHECK(ptx && ptx->version_major == entry.major && ptx->version_minor == entry.minor);
        }
    }
}

void check_extracts_the_original() {
    const std::string file = check::read_file(data + "/fatbins/saxpy.none.fatbin");
    auto fatbin = read_fatbin(as_bytes(file));
    CHECK_OK(fatbin);
    if (!fatbin || fatbin->entries.size() != 2) return CHECK(false);
    auto cubin = extract(fatbin->entries[0]);
    CHECK(cubin && as_text(*cubin) == check::read_file(data + "/h200/saxpy.sm90.cubin"));
}

/// zstd is only there where its library is; without it the reason must say what to do.
void check_zstd() {
    const std::string file = check::read_file(data + "/fatbins/saxpy.zstd.fatbin");
    auto fatbin = read_fatbin(as_bytes(file));
    if (!fatbin) return CHECK(false);
    auto image = extract(fatbin->entries[0]);
    if (!image) return CHECK_FAILS(image, "--compress-mode=none");
    check_entries("saxpy.zstd.fatbin", "elf 90 zstd, ptx 90 zstd, elf 75 zstd", true);
    auto damaged = fatbin->entries[0];
    damaged.payload = damaged.payload.first(damaged.payload.size() - 4);
    CHECK_FAILS(extract(damaged), "zstd: ");
    damaged = fatbin->entries[0];
    damaged.uncompressed_size += 1;
    CHECK_FAILS(extract(damaged), "not 3841");
    damaged.uncompressed_size = std::uint64_t{1} << 60;
    CHECK_FAILS(extract(damaged), "can't hold");
}

void check_malformed() {
    const std::string good = check::read_file(data + "/fatbins/saxpy.lz4.fatbin");
    auto patched = [&](std::size_t at, auto value) {
        std::string bad = good;
        std::memcpy(bad.data() + at, &value, sizeof(value));
        return bad;
    };
    auto reads = [](const std::string& bytes) { return read_fatbin(as_bytes(bytes)); };
    CHECK_FAILS(reads(""), "truncated header");
    CHECK_FAILS(reads(good.substr(0, good.size() - 1)), "are there");
    CHECK_FAILS(reads(patched(0, std::uint32_t{1})), "magic");
    CHECK_FAILS(reads(patched(4, std::uint16_t{2})), "version 2");
    CHECK_FAILS(reads(patched(6, std::uint16_t{8})), "header of 8");
    CHECK_FAILS(reads(patched(8, UINT64_MAX)), "are there");
    CHECK_FAILS(reads(patched(8, std::uint64_t{20})), "truncated header");
    CHECK_FAILS(reads(patched(20, std::uint32_t{0})), "header of 0");
    CHECK_FAILS(reads(patched(20, UINT32_MAX)), "header of");
    CHECK_FAILS(reads(patched(24, UINT64_MAX)), "payload of");
    CHECK_FAILS(reads(patched(3920 + 16, UINT32_MAX)), "compressed bytes");
}

void check_suffixes() {
    std::string file = check::read_file(data + "/fatbins/saxpy.lz4_all.fatbin");
    file[16 + 42] = '\x20'; // the flag of sm_90a becomes that of sm_90f
    auto fatbin = read_fatbin(as_bytes(file));
    CHECK(fatbin && describe(*fatbin) == "elf 90f lz4, ptx 90a lz4");
}

void check_wrapper() {
    struct {
        std::uint32_t magic = kFatbinWrapperMagic;
        std::uint32_t version = 1;
        const void* fatbin = nullptr;
        const void* others = nullptr;
    } wrapper;
    CHECK_FAILS(unwrap_fatbin(&wrapper), "nothing");
    wrapper.fatbin = &data;
    auto fatbin = unwrap_fatbin(&wrapper);
    CHECK(fatbin && *fatbin == &data);
    wrapper.magic = 1;
    CHECK_FAILS(unwrap_fatbin(&wrapper), "magic");
    CHECK_FAILS(unwrap_fatbin(nullptr), "null");
}

void check_embedded() {
    const std::string self = check::read_file("/proc/self/exe");
    auto found = find_embedded_fatbins(as_bytes(self));
    CHECK_OK(found);
    if (!found) return;
    CHECK_EQ(found->size(), 2u);
    for (Bytes each : *found) {
        auto fatbin = read_fatbin(each);
        CHECK_OK(fatbin);
        if (fatbin) CHECK_EQ(fatbin->entries.size(), 2u);
    }
    const std::string cubin = check::read_file(data + "/h200/saxpy.sm90.cubin");
    auto none = find_embedded_fatbins(as_bytes(cubin));
    CHECK(none && none->empty());
    CHECK_FAILS(find_embedded_fatbins(as_bytes("hello")), "ELF");
}

} // namespace

int main(int, char** arguments) {
    data = arguments[1];
    check_entries("saxpy.none.fatbin", "elf 90, ptx 90", true);
    check_entries("saxpy.lz4.fatbin", "elf 90, ptx 90 lz4, elf 75", true);
    check_entries("saxpy.lz4_all.fatbin", "elf 90a lz4, ptx 90a lz4", true);
    check_entries("saxpy.lto.fatbin", "ltoir 90 zstd", false);
    check_extracts_the_original();
    check_zstd();
    check_malformed();
    check_suffixes();
    check_wrapper();
    check_embedded();
    return check::failures();
}
