#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cudamod::formats {

/// One token of PTX text; Directive is a word with its dot (".entry"), Word an identifier or an
/// opcode.
struct PtxToken {
    enum class Kind { End, Directive, Word, Number, String, Punctuation };
    Kind kind = Kind::End;
    std::string_view text; ///< as written; of a string, what is between its quotes
    std::uint32_t line = 0;

    bool is(std::string_view other) const {
        return kind != Kind::String && kind != Kind::End && text == other;
    }
};

/// Splits PTX text into tokens, without blanks and comments. Any bytes are a sequence of tokens:
/// what PTX doesn't know is punctuation of one character. An unterminated comment or string ends
/// the text.
class PtxTokens {
  public:
    explicit PtxTokens(std::string_view text);

    const PtxToken& peek() const { return current_; }
    PtxToken take();
    /// Takes the token if it is this one.
    bool accept(std::string_view text);
    bool at_end() const { return current_.kind == PtxToken::Kind::End; }

  private:
    void advance();
    void skip_blanks();

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    PtxToken current_;
};

/// Decimal, 0x, 0b and leading-0 octal integers with an optional U; nothing for any other text or
/// overflow of 64 bits.
std::optional<std::uint64_t> parse_ptx_integer(std::string_view text);

} // namespace cudamod::formats
