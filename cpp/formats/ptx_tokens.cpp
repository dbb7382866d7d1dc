#include "formats/ptx_tokens.h"

#include <algorithm>

namespace cudamod::formats {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool continues_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}
bool starts_word(char c) {
    return is_letter(c) || c == '_' || c == '$' || c == '%';
}

} // namespace

PtxTokens::PtxTokens(std::string_view text) : text_(text.substr(0, text.find('\0'))) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    advance();
}

PtxToken PtxTokens::take() {
    PtxToken token = current_;
    advance();
    return token;
}

bool PtxTokens::accept(std::string_view text) {
    if (!current_.is(text)) return false;
    advance();
    return true;
}

void PtxTokens::skip_blanks() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '\n') {
            ++line_;
            ++at_;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            ++at_;
        } else if (text_.substr(at_, 2) == "//") {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (text_.substr(at_, 2) == "/*") {
            const auto end = text_.find("*/", at_ + 2);
            const auto next = end == text_.npos ? text_.size() : end + 2;
            line_ += static_cast<std::uint32_t>(
                std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                           text_.begin() + static_cast<std::ptrdiff_t>(next), '\n'));
            at_ = next;
        } else {
            return;
        }
    }
}

void PtxTokens::advance() {
    skip_blanks();
    current_ = PtxToken{PtxToken::Kind::End, {}, line_};
    if (at_ >= text_.size()) return;
    const std::size_t first = at_;
    const char c = text_[at_++];
    if (c == '"') {
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] == '\n') ++line_;
            at_ += text_[at_] == '\\' ? 2 : 1;
        }
        at_ = std::min(at_, text_.size());
        current_.kind = PtxToken::Kind::String;
        current_.text = text_.substr(first + 1, at_ - first - 1);
        if (at_ < text_.size()) ++at_;
        return;
    }
    if (starts_word(c) || (c == '.' && at_ < text_.size() && starts_word(text_[at_]))) {
        if (c == '.') ++at_;
        while (at_ < text_.size() && continues_word(text_[at_]))
            ++at_;
        current_.kind = c == '.' ? PtxToken::Kind::Directive : PtxToken::Kind::Word;
    } else if (is_digit(c)) {
        // Also 9.0, 0f3F800000 and 1e-3's mantissa: only whole integers are ever read back.
        while (at_ < text_.size() && (continues_word(text_[at_]) || text_[at_] == '.'))
            ++at_;
        current_.kind = PtxToken::Kind::Number;
    } else {
        current_.kind = PtxToken::Kind::Punctuation;
    }
    current_.text = text_.substr(first, at_ - first);
}

std::optional<std::uint64_t> parse_ptx_integer(std::string_view text) {
    if (!text.empty() && (text.back() == 'U' || text.back() == 'u')) text.remove_suffix(1);
    std::uint64_t base = 10;
    if (text.size() > 1 && text[0] == '0') {
        const char mark = text[1];
        if (mark == 'x' || mark == 'X') {
            base = 16;
        } else if (mark == 'b' || mark == 'B') {
            base = 2;
        } else {
            base = 8;
        }
        text.remove_prefix(base == 8 ? 1 : 2);
    }
    if (text.empty()) return std::nullopt;
    std::uint64_t value = 0;
    for (char c : text) {
        std::uint64_t digit = 16;
        if (is_digit(c)) digit = static_cast<std::uint64_t>(c - '0');
        if (c >= 'a' && c <= 'f') digit = static_cast<std::uint64_t>(c - 'a' + 10);
        if (c >= 'A' && c <= 'F') digit = static_cast<std::uint64_t>(c - 'A' + 10);
        if (digit >= base || value > (UINT64_MAX - digit) / base) return std::nullopt;
        value = value * base + digit;
    }
    return value;
}

} // namespace cudamod::formats
