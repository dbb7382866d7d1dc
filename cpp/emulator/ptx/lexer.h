/// PTX text to tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace cudamod::emulator::ptx {

enum class TokenKind : std::uint8_t {
    Identifier, ///< names, registers with their %
    Dotted,     ///< ".reg", ".u32", ".shared::cluster"; text includes the dot
    Integer,
    Single, ///< 0f3F800000
    Double, ///< 0d..., 1.5, 1e9
    String, ///< text without the quotes
    Punctuation,
    End
};

struct Token {
    TokenKind kind = TokenKind::End;
    std::string_view text;
    int line = 0;
    std::size_t begin = 0;     ///< offset in the source
    std::uint64_t integer = 0; ///< Integer: value; Single, Double: bits
    bool is_unsigned = false;  ///< Integer with suffix U, or beyond the signed range
    bool space_before = false;
};

/// Throws LoadError for characters and numbers that PTX does not have. Ends with an End token.
/// `source` must outlive the tokens.
std::vector<Token> tokenize(std::string_view source);

} // namespace cudamod::emulator::ptx
