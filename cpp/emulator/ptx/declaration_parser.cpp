#include "emulator/ptx/declaration_parser.h"

#include "emulator/ptx/operand_parser.h"

namespace cudamod::emulator::ptx {
namespace {

using syntax::Declaration;
using syntax::InitialValue;
using syntax::Operand;
using syntax::Space;

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 40;

std::uint32_t alignment(TokenStream& tokens) {
    const std::uint64_t value = tokens.integer("an alignment");
    if (value == 0 || (value & (value - 1)) != 0)
        tokens.fail("alignment " + std::to_string(value) + " is not a power of two");
    if (value > 1u << 20)
        tokens.fail("alignment " + std::to_string(value) + " is larger than 1048576");
    return static_cast<std::uint32_t>(value);
}

/// `.space [.align n] [.v2] .type [.ptr ...]`
Declaration head(TokenStream& tokens) {
    Declaration declaration;
    declaration.line = tokens.line();
    if (!declares(tokens.peek().text, declaration.space)) tokens.unexpected("a state space");
    tokens.take();
    while (tokens.peek().kind == TokenKind::Dotted) {
        const std::string_view word = tokens.peek().text;
        if (word == ".align") {
            tokens.take();
            declaration.alignment = alignment(tokens);
        } else if (word == ".v2" || word == ".v4" || word == ".v8") {
            tokens.take();
            declaration.vector = static_cast<unsigned>(word[2] - '0');
        } else if (word == ".ptr" && declaration.space == Space::Param) {
            tokens.take();
            for (const std::string_view space : {".global", ".const", ".local", ".shared"}) {
                if (tokens.accept_dotted(space)) break;
            }
            if (tokens.accept_dotted(".align")) alignment(tokens);
        } else if (const auto type = type_named(word.substr(1)); type && is_fundamental(*type)) {
            if (declaration.type != Type::None)
                tokens.fail("a second type '" + std::string(word) + "' in a declaration");
            tokens.take();
            declaration.type = *type;
        } else {
            tokens.fail("'" + std::string(word) + "' is not supported in a declaration");
        }
    }
    if (declaration.type == Type::None) tokens.unexpected("a type");
    if (declaration.type == Type::Pred && declaration.space != Space::Register) {
        tokens.fail("a variable can't have the type .pred");
    }
    return declaration;
}

InitialValue initial_value(TokenStream& tokens) {
    InitialValue result;
    if (tokens.peek().kind == TokenKind::Identifier && tokens.peek().text == "generic" &&
        tokens.is("(", 1)) {
        tokens.take();
        tokens.take();
        result.generic = true;
        result.value = parse_operand(tokens);
        tokens.expect(")");
        if (tokens.is("+") || tokens.is("-")) {
            result.value.displacement = static_cast<std::int64_t>(parse_constant(tokens).bits);
        }
        return result;
    }
    const bool masked = tokens.peek().kind == TokenKind::Integer && tokens.is("(", 1);
    if (masked) {
        const std::uint64_t mask = tokens.take().integer;
        tokens.take();
        result = initial_value(tokens);
        result.mask = mask;
        tokens.expect(")");
        return result;
    }
    result.value = parse_operand(tokens);
    return result;
}

void initializer(TokenStream& tokens, Declaration& declaration,
                 const std::vector<std::uint64_t>& dimensions, std::size_t level) {
    if (!tokens.accept("{")) {
        declaration.initial.push_back(initial_value(tokens));
        return;
    }
    if (level > 16) tokens.fail("initializer is nested too deeply");
    std::uint64_t span = declaration.vector;
    for (std::size_t i = level; i < dimensions.size(); ++i)
        span *= dimensions[i];
    const std::size_t start = declaration.initial.size();
    if (!tokens.is("}")) {
        do {
            initializer(tokens, declaration, dimensions, level + 1);
            if (declaration.initial.size() > (std::size_t{1} << 26))
                tokens.fail("initializer is too large");
        } while (tokens.accept(","));
    }
    tokens.expect("}");
    if (level > 0 && span != 0 && span < (std::uint64_t{1} << 26)) {
        // A short inner brace leaves the rest of its row zero.
        InitialValue zero;
        zero.value.kind = Operand::Kind::Integer;
        while (declaration.initial.size() - start < span)
            declaration.initial.push_back(zero);
    }
}

/// `name<5>`, `name[3][4] = {...}`
void declarator(TokenStream& tokens, Declaration& declaration) {
    declaration.line = tokens.line();
    declaration.name = tokens.identifier("a name");
    if (tokens.accept("<")) {
        const std::uint64_t count = tokens.integer("a count");
        if (count > 1u << 24) tokens.fail("too many registers: " + std::to_string(count));
        declaration.count = static_cast<std::uint32_t>(count);
        if (declaration.count == 0) declaration.unsized = true;
        tokens.expect(">");
    }
    std::vector<std::uint64_t> dimensions;
    while (tokens.accept("[")) {
        declaration.is_array = true;
        if (tokens.accept("]")) {
            if (!dimensions.empty()) tokens.fail("only the first dimension may be empty");
            declaration.unsized = true;
            dimensions.push_back(0);
            continue;
        }
        const std::uint64_t size = parse_constant(tokens).bits;
        if (size > kMaxElements / std::max<std::uint64_t>(declaration.elements, 1))
            tokens.fail("array is too large");
        declaration.elements *= size;
        dimensions.push_back(size);
        if (dimensions.size() > 16) tokens.fail("too many dimensions");
        tokens.expect("]");
    }
    if (!tokens.accept("=")) return;
    declaration.has_initial = true;
    initializer(tokens, declaration, dimensions, 0);
    if (declaration.unsized) {
        const std::uint64_t row = declaration.elements * declaration.vector;
        if (row == 0) tokens.fail("array of no elements can't be initialized");
        declaration.elements *= (declaration.initial.size() + row - 1) / row;
        declaration.unsized = false;
    }
}

} // namespace

bool declares(std::string_view directive, Space& space) {
    if (directive == ".reg") return space = Space::Register, true;
    if (directive == ".global") return space = Space::Global, true;
    if (directive == ".const") return space = Space::Constant, true;
    if (directive == ".shared" || directive == ".shared::cta") return space = Space::Shared, true;
    if (directive == ".local") return space = Space::Local, true;
    if (directive == ".param") return space = Space::Param, true;
    return false;
}

std::vector<Declaration> parse_declarations(TokenStream& tokens, bool is_extern) {
    const Declaration common = head(tokens);
    std::vector<Declaration> result;
    do {
        Declaration declaration = common;
        declaration.is_extern = is_extern;
        declarator(tokens, declaration);
        result.push_back(std::move(declaration));
    } while (tokens.accept(","));
    tokens.expect(";");
    return result;
}

std::vector<Declaration> parse_parameters(TokenStream& tokens) {
    std::vector<Declaration> result;
    tokens.expect("(");
    if (tokens.accept(")")) return result;
    do {
        Declaration declaration = head(tokens);
        if (declaration.space != Space::Param && declaration.space != Space::Register) {
            tokens.fail("a parameter must be .param or .reg");
        }
        declarator(tokens, declaration);
        result.push_back(std::move(declaration));
        if (result.size() > 8192) tokens.fail("too many parameters");
    } while (tokens.accept(","));
    tokens.expect(")");
    return result;
}

} // namespace cudamod::emulator::ptx
