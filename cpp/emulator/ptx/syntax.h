/// The parsed module: what the text says, before names and types are resolved.
#pragma once

#include "emulator/ptx/program.h"
#include "emulator/ptx/types.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cudamod::emulator::ptx::syntax {

enum class Space : std::uint8_t { Register, Global, Constant, Shared, Local, Param };

struct Operand {
    enum class Kind : std::uint8_t {
        Name,    ///< register, variable, label, special register, function
        Integer, ///< integer: value
        Single,  ///< integer: bits
        Double,  ///< integer: bits
        Address, ///< [base + displacement]; elements[0] is the base; further elements: coordinates
        Vector,  ///< {a, b, ...}
        List,    ///< (a, b, ...) of a call
        Pair,    ///< a|b
        Sink     ///< _
    };
    Kind kind = Kind::Name;
    std::string_view name;
    std::string_view element; ///< ".x" of a vector register
    bool negated = false;     ///< !p
    bool is_unsigned = false;
    std::uint64_t integer = 0;
    std::int64_t displacement = 0; ///< Address, and Name of a variable plus constant
    std::vector<Operand> elements;
};

/// An element of an initializer: a number or the address of a symbol.
struct InitialValue {
    Operand value;
    bool generic = false;   ///< generic(symbol)
    std::uint64_t mask = 0; ///< 0xff00(symbol): one byte of the address; 0: the whole
};

struct Declaration {
    int line = 0;
    Space space = Space::Register;
    Type type = Type::None;
    unsigned vector = 1; ///< .v2, .v4
    std::uint32_t alignment = 0;
    std::string_view name;
    std::uint32_t count = 0; ///< %r<10>: 10; 0 otherwise
    bool is_array = false, unsized = false, is_extern = false;
    std::uint64_t elements = 1; ///< product of the dimensions
    bool has_initial = false;
    std::vector<InitialValue> initial;
};

struct Statement;

struct Instruction {
    std::string_view guard; ///< predicate's name or empty
    bool guard_negated = false;
    std::string_view opcode;
    std::vector<std::string_view> modifiers; ///< without dots
    std::vector<Operand> operands;
};

struct Label {
    std::string_view name;
};

/// .branchtargets, .calltargets
struct Targets {
    std::string_view label;
    std::vector<std::string_view> names;
};

struct Prototype {
    std::string_view label;
    std::vector<Declaration> results, parameters;
};

struct Block {
    std::vector<Statement> statements;
};

struct Statement {
    int line = 0;
    std::string_view text;
    std::variant<Instruction, Label, std::vector<Declaration>, Targets, Prototype, Block> content;
};

struct Function {
    int line = 0;
    std::string_view name;
    bool is_entry = false, has_body = false, is_extern = false, no_return = false;
    std::vector<Declaration> results, parameters;
    Dim3 max_threads{0, 0, 0}, required_threads{0, 0, 0}, required_cluster{0, 0, 0};
    bool explicit_cluster = false;
    std::uint32_t max_cluster_rank = 0, min_blocks_per_sm = 0, max_registers = 0;
    Block body;
};

struct Alias {
    int line = 0;
    std::string_view name, target;
};

struct Module {
    int isa = 0;
    int target = 0;
    char target_suffix = 0;
    int target_line = 0;
    std::vector<Declaration> variables;
    std::vector<Function> functions;
    std::vector<Alias> aliases;
};

} // namespace cudamod::emulator::ptx::syntax
