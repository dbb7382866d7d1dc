#include "check.h"

#include "formats/elf.h"
#include "formats/image.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace cudamod::formats;

namespace {

std::string data;

ImageKind sniff_text(std::string_view text) {
    return sniff(as_bytes(text));
}

void check_kinds() {
    CHECK_EQ(sniff_text(check::read_file(data + "/h200/saxpy.sm90.cubin")), ImageKind::Cubin);
    CHECK_EQ(sniff_text(check::read_file(data + "/h200/saxpy.sm90.ptx")), ImageKind::Ptx);
    CHECK_EQ(sniff_text(check::read_file(data + "/fatbins/saxpy.zstd.fatbin")), ImageKind::Fatbin);
    CHECK_EQ(sniff_text(check::read_file(data + "/fatbins/saxpy.ltoir")), ImageKind::LtoIr);
    CHECK_EQ(sniff_text(check::read_file("/proc/self/exe")), ImageKind::Object);
    CHECK_EQ(sniff_text("!<arch>\nx.o/"), ImageKind::Archive);
    CHECK_EQ(sniff_text(std::string_view("\xb1\x43\x62\x46\1\0\0\0", 8)), ImageKind::FatbinWrapper);
    CHECK_EQ(sniff_text(""), ImageKind::Unknown);
    CHECK_EQ(sniff_text("\x7f"), ImageKind::Unknown);
    CHECK_EQ(sniff_text("hello"), ImageKind::Unknown);
    CHECK_EQ(sniff_text("\x7f"
                        "ELF"),
             ImageKind::Object);
}

void check_ptx_beginnings() {
    CHECK_EQ(sniff_text(".version 8.0\n"), ImageKind::Ptx);
    CHECK_EQ(sniff_text("// x\n/* .target\n*/\n\t.version 8.0"), ImageKind::Ptx);
    CHECK_EQ(sniff_text("\xef\xbb\xbf.version 8.0"), ImageKind::Ptx);
    CHECK_EQ(sniff_text("// .version 8.0"), ImageKind::Unknown);
    CHECK_EQ(sniff_text("/* .version 8.0"), ImageKind::Unknown);
    CHECK_EQ(sniff_text(".versions 8.0"), ImageKind::Unknown);
    CHECK_EQ(sniff_text(".version"), ImageKind::Unknown);
    CHECK_EQ(sniff_text(std::string_view("\0.version 8.0", 13)), ImageKind::Unknown);
}

void check_sizes() {
    for (const char* name : {"/h200/saxpy.sm75.cubin", "/h200/saxpy.sm90.cubin",
                             "/h200/saxpy.sm120.cubin", "/h200/mathd.sm90.cubin",
                             "/fatbins/saxpy.none.fatbin", "/fatbins/saxpy.lz4_all.fatbin"}) {
        const std::string file = check::read_file(data + name);
        const std::string longer = file + std::string(100, 'x');
        auto size = image_size(as_bytes(longer));
        CHECK_OK(size);
        if (size) CHECK_EQ(*size, file.size());
        auto trusted = unbounded_image_size(longer.data());
        CHECK_OK(trusted);
        if (trusted) CHECK_EQ(*trusted, file.size());
        CHECK(!image_size(as_bytes(file).first(file.size() - 1)));
        CHECK_FAILS(unbounded_image_size(file.data(), file.size() - 1), "limit");
    }
    const std::string_view ptx(".version 8.0\n\0garbage", 21);
    CHECK_EQ(image_size(as_bytes(ptx)).value(), 13u);
    CHECK_EQ(unbounded_image_size(ptx.data()).value(), 13u);
    CHECK_EQ(image_size(as_bytes(".version 8.0")).value(), 12u);
    CHECK_FAILS(image_size(as_bytes("hello")), "neither");
    CHECK_FAILS(unbounded_image_size("hello"), "neither");
    CHECK_FAILS(unbounded_image_size(nullptr), "null");
    CHECK_FAILS(unbounded_image_size("\xed\x43\x4e\x7f"), "LTO-IR");
    CHECK_FAILS(image_size(as_bytes(check::read_file(data + "/fatbins/saxpy.ltoir"))), "LTO-IR");
}

/// What follows an image, or a short text, need not be mapped.
void check_reads_nothing_behind() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = 16 * page;
    void* memory =
        mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    auto* end = static_cast<char*>(memory) + room;
    CHECK_EQ(mprotect(end, page, PROT_NONE), 0);
    auto at_end = [&](std::string_view content) {
        char* start = end - content.size();
        std::memcpy(start, content.data(), content.size());
        return unbounded_image_size(start);
    };
    for (const char* name : {"/h200/saxpy.sm90.cubin", "/fatbins/saxpy.zstd.fatbin"}) {
        const std::string file = check::read_file(data + name);
        auto size = at_end(file);
        CHECK_OK(size);
        if (size) CHECK_EQ(*size, file.size());
    }
    CHECK_EQ(at_end(std::string_view(".version 8.0\n", 14)).value(), 13u);
    CHECK(!at_end(std::string_view("", 1)));
    CHECK(!at_end(std::string_view("\x7f", 2)));
    CHECK(!at_end(std::string_view("\x7f"
                                   "EL",
                                   4)));
    munmap(memory, room + page);
}

} // namespace

int main(int, char** arguments) {
    data = arguments[1];
    check_kinds();
    check_ptx_beginnings();
    check_sizes();
    check_reads_nothing_behind();
    return check::failures();
}
