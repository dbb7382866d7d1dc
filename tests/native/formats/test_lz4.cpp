#include "check.h"

#include "formats/lz4.h"

using namespace cudamod::formats;
using namespace std::string_view_literals;

namespace {

Result<std::vector<std::byte>> decode(std::string_view block, std::uint64_t size) {
    return decompress_lz4(as_bytes(block), size);
}

void check_text(std::string_view block, std::string_view expected) {
    auto decoded = decode(block, expected.size());
    CHECK_OK(decoded);
    if (decoded) CHECK_EQ(as_text(*decoded), expected);
}

} // namespace

int main() {
    check_text("\x50hello"sv, "hello");
    check_text("\x00"sv, "");
    check_text("", "");
    // two literals, a match of 4 + 3 that overlaps itself, a last literal
    check_text("\x23"
               "ab\x02\x00\x10!"sv,
               "ababababa!");
    // 15 + 5 literals; a match of 4 + 15 + 2
    check_text("\xff\x05"
               "0123456789abcdefghij\x14\x00\x02\x00"sv,
               "0123456789abcdefghij0123456789abcdefghij0");
    const std::string run(19 + 255 + 7, 'x');
    check_text("\x1fx\x01\x00\xff\x06\x00"sv, run);

    CHECK_FAILS(decode("\x50hell"sv, 5), "ends inside literals");
    CHECK_FAILS(decode("\xf0"sv, 5), "ends inside a length");
    CHECK_FAILS(decode("\xf0\xff"sv, 5), "ends inside a length");
    CHECK_FAILS(decode("\x10"
                       "a\x01"sv,
                       5),
                "ends inside a match");
    CHECK_FAILS(decode("\x10"
                       "a\x00\x00"sv,
                       5),
                "0 bytes back");
    CHECK_FAILS(decode("\x10"
                       "a\x02\x00"sv,
                       5),
                "2 bytes back");
    CHECK_FAILS(decode("\x50hello"sv, 4), "more than 4");
    CHECK_FAILS(decode("\x1f"
                       "a\x01\x00\xff\xff\x00"sv,
                       100),
                "more than 100");
    CHECK_FAILS(decode("\x50hello"sv, 6), "5 bytes, not 6");
    CHECK_FAILS(decode("\x50hello"sv, std::uint64_t{1} << 60), "can't hold");
    return check::failures();
}
