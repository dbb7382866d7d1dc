#include "check.h"

#include "formats/archive.h"
#include "formats/contents.h"

using namespace cudamod::formats;

namespace {

std::string data;

/// A member's header as ar writes it.
std::string header(std::string name, std::size_t size) {
    name.resize(16, ' ');
    std::string length = std::to_string(size);
    length.resize(10, ' ');
    return name + std::string(32, '0') + length + "`\n";
}

std::string member(const std::string& name, const std::string& bytes) {
    return header(name, bytes.size()) + bytes + (bytes.size() % 2 ? "\n" : "");
}

std::string describe(const std::vector<ArchiveMember>& members) {
    std::string text;
    for (const ArchiveMember& member : members)
        text += member.name + "=" + std::string(as_text(member.bytes)) + ";";
    return text;
}

std::string members(const std::string& archive) {
    auto read = read_archive(as_bytes(archive));
    CHECK_OK(read);
    return read ? describe(*read) : "";
}

const std::string kMagic = "!<arch>\n";

void names() {
    CHECK_EQ(members(kMagic), "");
    CHECK_EQ(members(kMagic + member("a.o/", "abc") + member("b.o/", "de")), "a.o=abc;b.o=de;");
    CHECK_EQ(members(kMagic + member("/", "xx") + member("/SYM64/", "yy") + member("c/", "d")),
             "c=d;");
    const std::string table = "a_long_name_of_a_file.o/\nanother_long_name.o/\n";
    CHECK_EQ(members(kMagic + member("//", table) + member("/25", "second") + member("/0", "1st")),
             "another_long_name.o=second;a_long_name_of_a_file.o=1st;");
    CHECK_EQ(members(kMagic + member("#1/12", std::string("long_name.o\0bytes", 17))),
             "long_name.o=bytes;");
    CHECK_EQ(members(kMagic + member("#1/20", std::string("__.SYMDEF SORTED\0\0\0\0x", 21)) +
                     member("d", "e")),
             "d=e;");
}

/// Whether an archive can be read at all: its members are views into bytes that end here.
Result<std::size_t> read(const std::string& archive) {
    auto members = read_archive(as_bytes(archive));
    if (!members) return members.failure();
    return members->size();
}

void damage() {
    CHECK_FAILS(read(""), "wrong magic");
    CHECK_FAILS(read("!<thin>\n"), "thin");
    CHECK_FAILS(read(kMagic + "x"), "truncated header");
    CHECK_FAILS(read(kMagic + std::string(60, 'x')), "has no header");
    CHECK_FAILS(read(kMagic + header("a/", 4) + "abc"), "reaches beyond the end");
    CHECK_FAILS(read(kMagic + header("a/", SIZE_MAX)), "reaches beyond the end");
    CHECK_FAILS(read(kMagic + member("/7", "abc")), "has no name");
    CHECK_FAILS(read(kMagic + member("#1/9", "abc")), "has no name");
    CHECK_FAILS(read(kMagic + member("#1/x", "abc")), "has no name");
}

void contents() {
    const std::string archive = check::read_file(data + "/objects/parts.a");
    auto parts = read_contents(as_bytes(archive));
    CHECK_OK(parts);
    if (!parts) return;
    CHECK_EQ(parts->size(), 6u);
    const CodePart& first = parts->front();
    CHECK_EQ(first.member, "part.o");
    CHECK_EQ(first.kind, ImageKind::Cubin);
    CHECK(first.relocatable && first.kernels && first.kernels->size() == 1);

    const std::string ltoir = check::read_file(data + "/fatbins/saxpy.ltoir");
    auto lto = read_contents(as_bytes(ltoir));
    CHECK_OK(lto);
    CHECK(lto && lto->size() == 1 && !lto->front().kernels && !lto->front().reason.empty());
    auto text = read_contents(as_bytes("no image"));
    CHECK_FAILS(text, "neither");
    const std::string broken = kMagic + member("broken.o/", std::string("\x7f"
                                                                        "ELF",
                                                                        4));
    auto damaged = read_contents(as_bytes(broken));
    CHECK_FAILS(damaged, "member 'broken.o'");
    CHECK_OK(read_contents(as_bytes(kMagic + member("readme/", "text"))));
}

} // namespace

int main(int, char** arguments) {
    data = arguments[1];
    names();
    damage();
    contents();
    return check::failures();
}
