#include "emulator/ptx/lexer.h"

#include "emulator/ptx/diagnostics.h"

#include <bit>
#include <cstdlib>
#include <string>

namespace cudamod::emulator::ptx {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_name(char c) {
    return is_name_start(c) || is_digit(c);
}

int digit_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(source) {}

    std::vector<Token> run() {
        for (;;) {
            const bool space = skip_blank();
            Token token = next();
            token.space_before = space;
            tokens_.push_back(token);
            if (token.kind == TokenKind::End) return std::move(tokens_);
        }
    }

  private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
    }

    bool skip_blank() {
        const std::size_t start = at_;
        for (;;) {
            const char c = peek();
            if (c == '\n') {
                ++line_;
                ++at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
                ++at_;
            } else if (c == '/' && peek(1) == '/') {
                while (at_ < source_.size() && peek() != '\n')
                    ++at_;
            } else if (c == '/' && peek(1) == '*') {
                skip_block_comment();
            } else {
                return at_ != start;
            }
        }
    }

    void skip_block_comment() {
        const int opened = line_;
        at_ += 2;
        while (!(peek() == '*' && peek(1) == '/')) {
            if (at_ >= source_.size()) throw LoadError(opened, "unterminated comment");
            if (peek() == '\n') ++line_;
            ++at_;
        }
        at_ += 2;
    }

    Token make(TokenKind kind, std::size_t begin) const {
        Token token;
        token.kind = kind;
        token.text = source_.substr(begin, at_ - begin);
        token.line = line_;
        token.begin = begin;
        return token;
    }

    Token next() {
        const std::size_t begin = at_;
        if (at_ >= source_.size()) return make(TokenKind::End, begin);
        const char c = peek();
        if (is_name_start(c)) {
            while (is_name(peek()))
                ++at_;
            return make(TokenKind::Identifier, begin);
        }
        if (is_digit(c)) return number();
        if (c == '.' && (is_name_start(peek(1)) || is_digit(peek(1)))) {
            ++at_;
            while (is_name(peek()) || (peek() == ':' && peek(1) == ':' && is_name(peek(2)))) {
                at_ += peek() == ':' ? 2 : 1;
            }
            return make(TokenKind::Dotted, begin);
        }
        if (c == '"') return string();
        static constexpr std::string_view kPairs[] = {"<<", ">>", "&&", "||",
                                                      "==", "!=", "<=", ">="};
        for (const std::string_view pair : kPairs) {
            if (source_.substr(at_, 2) == pair) {
                at_ += 2;
                return make(TokenKind::Punctuation, begin);
            }
        }
        static constexpr std::string_view kSingles = "()[]{}<>,;:@!=+-*/%&|^~?";
        if (kSingles.find(c) == std::string_view::npos) {
            throw LoadError(line_, "unexpected character " + quoted(c));
        }
        ++at_;
        return make(TokenKind::Punctuation, begin);
    }

    static std::string quoted(char c) {
        if (c >= 32 && c < 127) return std::string("'") + c + "'";
        static constexpr char kHex[] = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(c);
        return std::string("0x") + kHex[byte >> 4] + kHex[byte & 15];
    }

    Token string() {
        const std::size_t begin = ++at_;
        while (peek() != '"') {
            if (at_ >= source_.size() || peek() == '\n')
                throw LoadError(line_, "unterminated string");
            ++at_;
        }
        Token token = make(TokenKind::String, begin);
        ++at_;
        return token;
    }

    Token number() {
        if (peek() == '0' && (peek(1) == 'f' || peek(1) == 'F'))
            return float_bits(8, TokenKind::Single);
        if (peek() == '0' && (peek(1) == 'd' || peek(1) == 'D'))
            return float_bits(16, TokenKind::Double);
        std::size_t ahead = 0;
        while (is_digit(peek(ahead)))
            ++ahead;
        const bool point = peek(ahead) == '.' && !is_name_start(peek(ahead + 1));
        const bool exponent = (peek(ahead) == 'e' || peek(ahead) == 'E') && peek(1) != 'x';
        return point || exponent ? decimal_float() : integer();
    }

    Token float_bits(int digits, TokenKind kind) {
        const std::size_t begin = at_;
        at_ += 2;
        std::uint64_t bits = 0;
        for (int i = 0; i < digits; ++i, ++at_) {
            const int value = digit_value(peek());
            if (value > 15) throw LoadError(line_, "malformed floating-point constant");
            bits = bits << 4 | static_cast<unsigned>(value);
        }
        if (is_name(peek())) throw LoadError(line_, "malformed floating-point constant");
        Token token = make(kind, begin);
        token.integer = bits;
        return token;
    }

    Token decimal_float() {
        const std::size_t begin = at_;
        while (is_digit(peek()))
            ++at_;
        if (peek() == '.') ++at_;
        while (is_digit(peek()))
            ++at_;
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            if (!is_digit(peek())) throw LoadError(line_, "malformed floating-point constant");
            while (is_digit(peek()))
                ++at_;
        }
        if (is_name(peek())) throw LoadError(line_, "malformed floating-point constant");
        Token token = make(TokenKind::Double, begin);
        token.integer =
            std::bit_cast<std::uint64_t>(std::strtod(std::string(token.text).c_str(), nullptr));
        return token;
    }

    Token integer() {
        const std::size_t begin = at_;
        unsigned base = 10;
        if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
            base = 16;
            at_ += 2;
        } else if (peek() == '0' && (peek(1) == 'b' || peek(1) == 'B')) {
            base = 2;
            at_ += 2;
        } else if (peek() == '0') {
            base = 8;
        }
        std::uint64_t value = 0;
        bool any = false;
        while (static_cast<unsigned>(digit_value(peek())) < base) {
            const auto digit = static_cast<unsigned>(digit_value(peek()));
            if (value > (~std::uint64_t{0} - digit) / base) {
                throw LoadError(line_, "integer constant does not fit 64 bits");
            }
            value = value * base + digit;
            any = true;
            ++at_;
        }
        bool is_unsigned = value >> 63 != 0;
        if (peek() == 'U' || peek() == 'u') {
            is_unsigned = true;
            ++at_;
        }
        if (!any || is_name(peek())) throw LoadError(line_, "malformed integer constant");
        Token token = make(TokenKind::Integer, begin);
        token.integer = value;
        token.is_unsigned = is_unsigned;
        return token;
    }

    std::string_view source_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> tokenize(std::string_view source) {
    return Lexer(source).run();
}

} // namespace cudamod::emulator::ptx
