#include "emulator/ptx/variable_table.h"

#include "emulator/ptx/diagnostics.h"

#include <algorithm>
#include <bit>

namespace cudamod::emulator::ptx {
namespace {

constexpr std::uint64_t kMaxInitialized = std::uint64_t{256} << 20;

std::uint64_t number(const syntax::Operand& value, Type type, int line) {
    using Kind = syntax::Operand::Kind;
    if (value.kind == Kind::Integer) {
        if (type == Type::F32)
            return std::bit_cast<std::uint32_t>(
                static_cast<float>(static_cast<std::int64_t>(value.integer)));
        if (type == Type::F64)
            return std::bit_cast<std::uint64_t>(
                static_cast<double>(static_cast<std::int64_t>(value.integer)));
        return value.integer;
    }
    if (value.kind == Kind::Single) {
        if (type == Type::F32 || is_bits(type)) return value.integer;
        const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(value.integer));
        if (type == Type::F64) return std::bit_cast<std::uint64_t>(static_cast<double>(single));
    }
    if (value.kind == Kind::Double) {
        if (type == Type::F64 || is_bits(type)) return value.integer;
        if (type == Type::F32)
            return std::bit_cast<std::uint32_t>(
                static_cast<float>(std::bit_cast<double>(value.integer)));
    }
    throw LoadError(line,
                    "Initial value does not fit a variable of type ." + std::string(name_of(type)));
}

} // namespace

std::uint64_t size_of(const syntax::Declaration& declaration) {
    return size_of(declaration.type) * std::uint64_t{declaration.vector} * declaration.elements;
}

std::uint32_t alignment_of(const syntax::Declaration& declaration) {
    const std::uint32_t natural = std::max(size_of(declaration.type), 1u) * declaration.vector;
    return std::max(declaration.alignment, natural);
}

Symbol VariableTable::add(const syntax::Declaration& declaration, const std::string& name) {
    Symbol symbol;
    symbol.type = declaration.type;
    symbol.size = declaration.unsized ? 0 : size_of(declaration);
    if (declaration.space == syntax::Space::Shared) {
        if (declaration.has_initial)
            throw LoadError(declaration.line,
                            "shared variable '" + name + "' can't have an initializer");
        if (symbol.size > std::uint64_t{16} << 20)
            throw LoadError(declaration.line, "shared variable '" + name + "' is too large");
        if (declaration.unsized && !declaration.is_extern) {
            throw LoadError(declaration.line,
                            "shared array '" + name + "' without a size must be extern");
        }
        symbol.kind = Symbol::Kind::Shared;
        symbol.index = static_cast<std::uint32_t>(code_.shared.size());
        code_.shared.push_back({name, static_cast<std::uint32_t>(symbol.size),
                                alignment_of(declaration), declaration.is_extern});
        return symbol;
    }
    if (declaration.space != syntax::Space::Global &&
        declaration.space != syntax::Space::Constant) {
        throw LoadError(declaration.line, "variable '" + name + "' can't be declared here");
    }
    if (declaration.unsized) throw LoadError(declaration.line, "array '" + name + "' needs a size");
    Variable variable;
    variable.name = name;
    variable.space = declaration.space == syntax::Space::Constant ? VariableSpace::Constant
                                                                  : VariableSpace::Global;
    variable.size = symbol.size;
    variable.alignment = alignment_of(declaration);
    if (declaration.has_initial) initialize(variable, declaration);
    symbol.kind = Symbol::Kind::Variable;
    symbol.is_constant = variable.space == VariableSpace::Constant;
    symbol.index = static_cast<std::uint32_t>(code_.variables.size());
    code_.variables.push_back(std::move(variable));
    return symbol;
}

void VariableTable::initialize(Variable& variable, const syntax::Declaration& declaration) {
    const unsigned bytes = size_of(declaration.type);
    if (declaration.initial.size() * std::uint64_t{bytes} > variable.size ||
        variable.size > kMaxInitialized) {
        throw LoadError(declaration.line, "too many initial values for '" + variable.name + "'");
    }
    variable.initial.resize(variable.size);
    for (std::size_t n = 0; n < declaration.initial.size(); ++n) {
        const syntax::InitialValue& value = declaration.initial[n];
        if (value.value.kind == syntax::Operand::Kind::Name) {
            n += relocate(variable, declaration, n);
            continue;
        }
        if (value.generic || value.mask != 0)
            throw LoadError(declaration.line,
                            "a symbol is wanted in the initial value of '" + variable.name + "'");
        const std::uint64_t bits = number(value.value, declaration.type, declaration.line);
        for (unsigned b = 0; b < std::min(bytes, 8u); ++b)
            variable.initial[n * bytes + b] = static_cast<std::uint8_t>(bits >> (8 * b));
    }
}

/// Answers how many further elements the address covers: 7 when it is given byte by byte.
std::size_t VariableTable::relocate(Variable& variable, const syntax::Declaration& declaration,
                                    std::size_t element) {
    const unsigned bytes = size_of(declaration.type);
    const syntax::InitialValue& first = declaration.initial[element];
    if (!first.value.element.empty() || first.value.negated)
        throw LoadError(declaration.line, "malformed initial value of '" + variable.name + "'");
    std::size_t further = 0;
    if (first.mask != 0) {
        for (std::size_t n = 0; n < 8; ++n) {
            const bool fits =
                bytes == 1 && element + n < declaration.initial.size() &&
                declaration.initial[element + n].mask == std::uint64_t{0xff} << (8 * n) &&
                declaration.initial[element + n].value.name == first.value.name &&
                declaration.initial[element + n].value.displacement == first.value.displacement;
            if (!fits)
                throw LoadError(declaration.line,
                                "an address given in parts must have all 8 bytes in order, in '" +
                                    variable.name + "'");
        }
        further = 7;
    } else if (bytes != 8) {
        throw LoadError(declaration.line, "an address needs 8 bytes, the elements of '" +
                                              variable.name + "' have " + std::to_string(bytes));
    }
    const std::string symbol(first.value.name);
    variable.relocations.push_back(
        {element * std::uint64_t{bytes}, symbol, first.value.displacement});
    mentioned_.emplace_back(symbol, declaration.line);
    return further;
}

} // namespace cudamod::emulator::ptx
