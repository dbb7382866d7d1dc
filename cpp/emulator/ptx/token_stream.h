/// A cursor over tokens with the questions that a parser asks.
#pragma once

#include "emulator/ptx/diagnostics.h"
#include "emulator/ptx/lexer.h"

#include <string>
#include <string_view>
#include <vector>

namespace cudamod::emulator::ptx {

class TokenStream {
  public:
    TokenStream(std::string_view source, std::vector<Token> tokens)
        : source_(source), tokens_(std::move(tokens)) {}

    const Token& peek(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }
    const Token& take() {
        const Token& token = peek();
        if (token.kind != TokenKind::End) ++at_;
        last_ = &token;
        return token;
    }
    int line() const { return peek().line; }
    bool at_end() const { return peek().kind == TokenKind::End; }

    bool is(std::string_view punctuation, std::size_t ahead = 0) const {
        const Token& token = peek(ahead);
        return token.kind == TokenKind::Punctuation && token.text == punctuation;
    }
    bool is_dotted(std::string_view text, std::size_t ahead = 0) const {
        return peek(ahead).kind == TokenKind::Dotted && peek(ahead).text == text;
    }
    bool accept(std::string_view punctuation) {
        if (!is(punctuation)) return false;
        take();
        return true;
    }
    bool accept_dotted(std::string_view text) {
        if (!is_dotted(text)) return false;
        take();
        return true;
    }
    void expect(std::string_view punctuation) {
        if (!accept(punctuation)) unexpected("'" + std::string(punctuation) + "'");
    }
    std::string_view identifier(const char* what) {
        if (peek().kind != TokenKind::Identifier) unexpected(what);
        return take().text;
    }
    std::uint64_t integer(const char* what) {
        if (peek().kind != TokenKind::Integer) unexpected(what);
        return take().integer;
    }

    [[noreturn]] void fail(const std::string& reason) const { throw LoadError(line(), reason); }
    [[noreturn]] void unexpected(const std::string& wanted) const {
        throw LoadError(line(), "Parsing error near '" + shown(peek()) +
                                    "': syntax error, expected " + wanted);
    }

    /// The source from `first` to the token taken last.
    std::string_view text_since(const Token& first) const {
        if (last_ == nullptr || last_->begin < first.begin) return first.text;
        return source_.substr(first.begin, last_->begin + last_->text.size() - first.begin);
    }

    static std::string shown(const Token& token) {
        return token.kind == TokenKind::End ? std::string("end of input")
                                            : std::string(token.text.substr(0, 80));
    }

  private:
    std::string_view source_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    const Token* last_ = nullptr;
};

} // namespace cudamod::emulator::ptx
