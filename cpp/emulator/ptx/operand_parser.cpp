#include "emulator/ptx/operand_parser.h"

#include <bit>

namespace cudamod::emulator::ptx {
namespace {

using syntax::Operand;

constexpr int kMaxExpressionDepth = 200;

class Expression {
  public:
    explicit Expression(TokenStream& tokens) : tokens_(tokens) {}

    ConstantValue conditional(int depth) {
        const ConstantValue condition = binary(0, depth);
        if (!tokens_.accept("?")) return condition;
        const ConstantValue yes = conditional(deeper(depth));
        tokens_.expect(":");
        const ConstantValue no = conditional(deeper(depth));
        return condition.bits != 0 ? yes : no;
    }

  private:
    int deeper(int depth) const {
        if (depth > kMaxExpressionDepth) tokens_.fail("constant expression is nested too deeply");
        return depth + 1;
    }

    static int precedence(std::string_view op) {
        static constexpr std::string_view kLevels[][4] = {{"||"},
                                                          {"&&"},
                                                          {"|"},
                                                          {"^"},
                                                          {"&"},
                                                          {"==", "!="},
                                                          {"<", ">", "<=", ">="},
                                                          {"<<", ">>"},
                                                          {"+", "-"},
                                                          {"*", "/", "%"}};
        int level = 0;
        for (const auto& operators : kLevels) {
            for (const std::string_view candidate : operators) {
                if (!candidate.empty() && candidate == op) return level;
            }
            ++level;
        }
        return -1;
    }

    ConstantValue binary(int minimum, int depth) {
        ConstantValue left = unary(deeper(depth));
        for (;;) {
            const Token& token = tokens_.peek();
            if (token.kind != TokenKind::Punctuation) return left;
            const int level = precedence(token.text);
            if (level < minimum) return left;
            const std::string_view op = tokens_.take().text;
            left = apply(op, left, binary(level + 1, deeper(depth)));
        }
    }

    ConstantValue unary(int depth) {
        if (tokens_.accept("-")) {
            ConstantValue value = unary(deeper(depth));
            value.bits = 0 - value.bits;
            value.is_unsigned = false;
            return value;
        }
        if (tokens_.accept("+")) return unary(deeper(depth));
        if (tokens_.accept("~")) {
            ConstantValue value = unary(deeper(depth));
            value.bits = ~value.bits;
            return value;
        }
        if (tokens_.accept("!")) return {unary(deeper(depth)).bits == 0 ? 1u : 0u, false};
        if (tokens_.accept("(")) {
            if (tokens_.is_dotted(".s64") || tokens_.is_dotted(".u64")) {
                const bool to_unsigned = tokens_.take().text == ".u64";
                tokens_.expect(")");
                return {unary(deeper(depth)).bits, to_unsigned};
            }
            const ConstantValue value = conditional(deeper(depth));
            tokens_.expect(")");
            return value;
        }
        if (tokens_.peek().kind == TokenKind::Identifier && tokens_.peek().text == "WARP_SZ") {
            tokens_.take();
            return {32, false};
        }
        if (tokens_.peek().kind != TokenKind::Integer) tokens_.unexpected("a constant");
        const Token& token = tokens_.take();
        return {token.integer, token.is_unsigned};
    }

    ConstantValue apply(std::string_view op, ConstantValue a, ConstantValue b) const {
        const bool is_unsigned = a.is_unsigned || b.is_unsigned;
        const auto x = static_cast<std::int64_t>(a.bits), y = static_cast<std::int64_t>(b.bits);
        const auto truth = [](bool value) { return ConstantValue{value ? 1u : 0u, false}; };
        if (op == "||") return truth(a.bits != 0 || b.bits != 0);
        if (op == "&&") return truth(a.bits != 0 && b.bits != 0);
        if (op == "==") return truth(a.bits == b.bits);
        if (op == "!=") return truth(a.bits != b.bits);
        if (op == "<") return truth(is_unsigned ? a.bits < b.bits : x < y);
        if (op == ">") return truth(is_unsigned ? a.bits > b.bits : x > y);
        if (op == "<=") return truth(is_unsigned ? a.bits <= b.bits : x <= y);
        if (op == ">=") return truth(is_unsigned ? a.bits >= b.bits : x >= y);
        if (op == "|") return {a.bits | b.bits, is_unsigned};
        if (op == "^") return {a.bits ^ b.bits, is_unsigned};
        if (op == "&") return {a.bits & b.bits, is_unsigned};
        if (op == "<<") return {b.bits > 63 ? 0 : a.bits << b.bits, a.is_unsigned};
        if (op == ">>") {
            const std::uint64_t count = b.bits > 63 ? 63 : b.bits;
            if (!a.is_unsigned) return {static_cast<std::uint64_t>(x >> count), false};
            return {b.bits > 63 ? 0 : a.bits >> count, true};
        }
        if (op == "+") return {a.bits + b.bits, is_unsigned};
        if (op == "-") return {a.bits - b.bits, is_unsigned};
        if (op == "*") return {a.bits * b.bits, is_unsigned};
        if (b.bits == 0) tokens_.fail("division by zero in a constant expression");
        if (is_unsigned) return {op == "/" ? a.bits / b.bits : a.bits % b.bits, true};
        if (y == -1) return {op == "/" ? 0 - a.bits : 0, false};
        return {static_cast<std::uint64_t>(op == "/" ? x / y : x % y), false};
    }

    TokenStream& tokens_;
};

Operand integer_operand(TokenStream& tokens) {
    Operand operand;
    operand.kind = Operand::Kind::Integer;
    const ConstantValue value = parse_constant(tokens);
    operand.integer = value.bits;
    operand.is_unsigned = value.is_unsigned;
    return operand;
}

Operand literal_operand(TokenStream& tokens) {
    const bool minus = tokens.is("-");
    const TokenKind kind = tokens.peek(minus ? 1 : 0).kind;
    if (kind != TokenKind::Single && kind != TokenKind::Double) return integer_operand(tokens);
    if (minus) tokens.take();
    Operand operand;
    operand.kind = kind == TokenKind::Single ? Operand::Kind::Single : Operand::Kind::Double;
    operand.integer = tokens.take().integer;
    if (minus) operand.integer ^= std::uint64_t{1} << (kind == TokenKind::Single ? 31 : 63);
    return operand;
}

Operand name_operand(TokenStream& tokens) {
    Operand operand;
    operand.name = tokens.identifier("an operand");
    if (operand.name == "_") {
        operand.kind = Operand::Kind::Sink;
        return operand;
    }
    if (tokens.peek().kind == TokenKind::Dotted && !tokens.peek().space_before) {
        operand.element = tokens.take().text;
    }
    if (tokens.is("+") || tokens.is("-")) {
        operand.displacement = static_cast<std::int64_t>(parse_constant(tokens).bits);
    }
    return operand;
}

Operand simple_operand(TokenStream& tokens) {
    if (tokens.is("!") && tokens.peek(1).kind == TokenKind::Identifier &&
        tokens.peek(1).text != "WARP_SZ") {
        tokens.take();
        Operand operand = name_operand(tokens);
        operand.negated = true;
        return operand;
    }
    if (tokens.peek().kind == TokenKind::Identifier && tokens.peek().text != "WARP_SZ") {
        return name_operand(tokens);
    }
    return literal_operand(tokens);
}

Operand sequence(TokenStream& tokens, Operand::Kind kind, std::string_view close) {
    Operand operand;
    operand.kind = kind;
    tokens.take();
    if (tokens.accept(close)) return operand;
    do {
        if (tokens.is("{")) {
            operand.elements.push_back(sequence(tokens, Operand::Kind::Vector, "}"));
        } else {
            operand.elements.push_back(simple_operand(tokens));
        }
        if (operand.elements.size() > 1024) tokens.fail("too many operands");
    } while (tokens.accept(","));
    tokens.expect(close);
    return operand;
}

Operand address_operand(TokenStream& tokens) {
    Operand operand;
    operand.kind = Operand::Kind::Address;
    tokens.take();
    if (tokens.peek().kind == TokenKind::Identifier && tokens.peek().text != "WARP_SZ") {
        Operand base = name_operand(tokens);
        operand.displacement = base.displacement;
        base.displacement = 0;
        operand.elements.push_back(base);
    } else {
        operand.elements.push_back(integer_operand(tokens));
    }
    while (tokens.accept(",")) {
        operand.elements.push_back(tokens.is("{") ? sequence(tokens, Operand::Kind::Vector, "}")
                                                  : simple_operand(tokens));
    }
    tokens.expect("]");
    return operand;
}

} // namespace

ConstantValue parse_constant(TokenStream& tokens) {
    return Expression(tokens).conditional(0);
}

Operand parse_list(TokenStream& tokens) {
    return sequence(tokens, Operand::Kind::List, ")");
}

Operand parse_operand(TokenStream& tokens) {
    if (tokens.is("[")) return address_operand(tokens);
    if (tokens.is("{")) return sequence(tokens, Operand::Kind::Vector, "}");
    Operand operand = simple_operand(tokens);
    if (tokens.accept("|")) {
        Operand pair;
        pair.kind = Operand::Kind::Pair;
        pair.elements.push_back(operand);
        pair.elements.push_back(simple_operand(tokens));
        return pair;
    }
    return operand;
}

} // namespace cudamod::emulator::ptx
