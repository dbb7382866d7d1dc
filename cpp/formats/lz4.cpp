#include "formats/lz4.h"

namespace cudamod::formats {
namespace {

constexpr std::uint64_t kMostPerLz4Byte =
    255; // no byte of a block stands for more than 255 decoded ones
constexpr std::size_t kShortestMatch = 4;
constexpr std::size_t kLongNibble = 15;

Failure bad_lz4(std::string what) {
    return Failure{"LZ4 block: " + std::move(what)};
}

/// Adds the bytes that follow a nibble of 15; false at the end of the block.
bool read_length(Bytes block, std::size_t& at, std::size_t& length) {
    for (;;) {
        if (at == block.size()) return false;
        const auto more = std::to_integer<std::size_t>(block[at++]);
        length += more;
        if (more != 255) return true;
    }
}

} // namespace

Result<std::vector<std::byte>> decompress_lz4(Bytes block, std::uint64_t size) {
    if (size / kMostPerLz4Byte > block.size()) {
        return bad_lz4(std::to_string(block.size()) + " bytes can't hold " + std::to_string(size));
    }
    std::vector<std::byte> out;
    out.reserve(static_cast<std::size_t>(size));
    std::size_t at = 0;
    while (at < block.size()) {
        const auto token = std::to_integer<std::size_t>(block[at++]);
        std::size_t literals = token >> 4;
        if (literals == kLongNibble && !read_length(block, at, literals)) {
            return bad_lz4("ends inside a length");
        }
        if (literals > block.size() - at) return bad_lz4("ends inside literals");
        if (literals > size - out.size()) {
            return bad_lz4("decodes to more than " + std::to_string(size) + " bytes");
        }
        out.insert(out.end(), block.begin() + static_cast<std::ptrdiff_t>(at),
                   block.begin() + static_cast<std::ptrdiff_t>(at + literals));
        at += literals;
        if (at == block.size()) break; // the last sequence has no match

        auto distance = read<std::uint16_t>(block, at);
        if (!distance) return bad_lz4("ends inside a match");
        at += 2;
        std::size_t length = (token & 15) + kShortestMatch;
        if ((token & 15) == kLongNibble && !read_length(block, at, length)) {
            return bad_lz4("ends inside a length");
        }
        if (*distance == 0 || *distance > out.size()) {
            return bad_lz4("a match reaches " + std::to_string(*distance) + " bytes back after " +
                           std::to_string(out.size()));
        }
        if (length > size - out.size()) {
            return bad_lz4("decodes to more than " + std::to_string(size) + " bytes");
        }
        const std::size_t from = out.size() - *distance;
        for (std::size_t i = 0; i < length; ++i)
            out.push_back(out[from + i]); // may overlap itself
    }
    if (out.size() != size) {
        return bad_lz4("decodes to " + std::to_string(out.size()) + " bytes, not " +
                       std::to_string(size));
    }
    return out;
}

} // namespace cudamod::formats
