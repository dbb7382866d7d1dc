#include "formats/archive.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace cudamod::formats {
namespace {

constexpr std::string_view kMagic = "!<arch>\n";
constexpr std::string_view kThinMagic = "!<thin>\n";
constexpr std::size_t kHeaderBytes = 60;

Failure fail(std::string what) {
    return Failure{"archive: " + std::move(what)};
}

std::string_view trim(std::string_view text) {
    const auto end = text.find_last_not_of(' ');
    return end == text.npos ? std::string_view{} : text.substr(0, end + 1);
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// The name that a header gives: its own, one of the table of long names, or one that begins the
/// contents, which it is then cut from.
std::optional<std::string> name_of(std::string_view field, std::string_view long_names,
                                   Bytes& contents) {
    if (field.starts_with("#1/")) {
        const auto length = number(field.substr(3));
        const auto part = length ? slice(contents, 0, *length) : std::nullopt;
        if (!part) return std::nullopt;
        contents = contents.subspan(part->size());
        const std::string_view name = as_text(*part);
        return std::string(name.substr(0, name.find('\0')));
    }
    if (field.size() > 1 && field[0] == '/' && field[1] >= '0' && field[1] <= '9') {
        const auto offset = number(field.substr(1));
        if (!offset || *offset >= long_names.size()) return std::nullopt;
        const std::string_view name = long_names.substr(static_cast<std::size_t>(*offset));
        return std::string(name.substr(0, name.find_first_of("/\n")));
    }
    return std::string(field.substr(0, field.find('/')));
}

bool is_symbol_table(std::string_view field) {
    return field == "/" || field == "/SYM64/" || field.starts_with("__.SYMDEF");
}

} // namespace

Result<std::vector<ArchiveMember>> read_archive(Bytes archive) {
    const std::string_view text = as_text(archive);
    if (text.starts_with(kThinMagic)) return fail("it is a thin one, which holds no members");
    if (!text.starts_with(kMagic)) return fail("wrong magic");
    std::vector<ArchiveMember> members;
    std::string_view long_names;
    std::size_t at = kMagic.size();
    while (at < archive.size()) {
        const std::string where = "member at offset " + std::to_string(at);
        if (archive.size() - at < kHeaderBytes) return fail(where + " has a truncated header");
        const std::string_view header = text.substr(at, kHeaderBytes);
        at += kHeaderBytes;
        if (!header.ends_with("`\n")) return fail(where + " has no header");
        const auto size = number(trim(header.substr(48, 10)));
        const auto contents = size ? slice(archive, at, *size) : std::nullopt;
        if (!contents) return fail(where + " reaches beyond the end");
        at += contents->size() + contents->size() % 2;
        const std::string_view field = trim(header.substr(0, 16));
        if (field == "//") {
            long_names = as_text(*contents);
            continue;
        }
        if (is_symbol_table(field)) continue;
        ArchiveMember member{{}, *contents};
        auto name = name_of(field, long_names, member.bytes);
        if (!name) return fail(where + " has no name");
        if (is_symbol_table(*name)) continue;
        member.name = std::move(*name);
        members.push_back(std::move(member));
    }
    return members;
}

} // namespace cudamod::formats
