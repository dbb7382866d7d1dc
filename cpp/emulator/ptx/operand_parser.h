/// Operands of instructions, and PTX's constant expressions.
#pragma once

#include "emulator/ptx/syntax.h"
#include "emulator/ptx/token_stream.h"

namespace cudamod::emulator::ptx {

syntax::Operand parse_operand(TokenStream& tokens);

/// `(a, b)` of a call.
syntax::Operand parse_list(TokenStream& tokens);

struct ConstantValue {
    std::uint64_t bits = 0;
    bool is_unsigned = false;
};

/// An integer constant expression, with PTX's operators and its 64-bit arithmetic.
ConstantValue parse_constant(TokenStream& tokens);

} // namespace cudamod::emulator::ptx
