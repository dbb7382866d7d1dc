/// Instruction forms: which opcode allows which modifiers and operands.
///
/// One table (forms.cpp) declares them all; whatever it does not declare is refused.
#pragma once

#include "emulator/ptx/types.h"

#include <array>
#include <string_view>
#include <vector>

namespace cudamod::emulator::ptx {

/// The source of handlers for a form.
enum class Family : std::uint8_t {
    Integer,
    Logic,
    Float,
    Half,
    Approximate,
    Compare,
    Convert,
    Move,
    Special,
    Memory,
    Atomic,
    Control,
    Warp,
    Barrier,
    Async,
    Nothing,
    Matrix,
    MemoryBarrier,
    Bulk,
    Tensor,
    Policy,
    Video,
    Pair,
};

/// A row of the table.
///
/// `modifiers`: slots separated by spaces, alternatives by '|', "?" at the end of a slot makes it
/// optional. `operands`: separated by spaces, "?" at the end makes one optional:
///   D destination register, S source, each followed by the type: 0, 1, 2 (the n-th type among the
///   modifiers), w (twice the width of type 0), p (predicate) or a type's name;
///   Q: p or p|q, destinations; R: d or d|p, a 32-bit destination and a predicate;
///   A: address; V0: vector or scalar of type 0 (destination), U0: the same as a source;
///   L: label; F: call's operands; I: an integer constant; M: registers of a matrix.
struct FormRow {
    std::string_view opcode;
    std::string_view modifiers;
    std::string_view operands;
    Family family;
    int min_target = 0;
    int min_isa = 0;
    bool specific = false; ///< for sm_90a and the like only
};

/// A row together with the modifiers an instruction chose.
struct Form {
    const FormRow* row = nullptr;
    std::vector<std::string_view> modifiers;
    std::array<Type, 4> types{};
    unsigned type_count = 0;

    std::string_view opcode() const { return row->opcode; }
    bool is(std::string_view opcode) const { return row->opcode == opcode; }
    bool has(std::string_view modifier) const {
        for (const std::string_view candidate : modifiers) {
            if (candidate == modifier) return true;
        }
        return false;
    }
    Type type() const { return types[0]; }
};

/// Finds the row that fits. Throws LoadError naming the modifier that does not.
Form match_form(std::string_view opcode, const std::vector<std::string_view>& modifiers,
                std::size_t operands, int line);

/// All rows, for tests and documentation.
const std::vector<FormRow>& all_forms();

} // namespace cudamod::emulator::ptx
