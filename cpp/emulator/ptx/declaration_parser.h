/// Declarations of registers, variables and parameters.
#pragma once

#include "emulator/ptx/syntax.h"
#include "emulator/ptx/token_stream.h"

namespace cudamod::emulator::ptx {

/// The space that a directive such as ".global" opens, if it opens one.
bool declares(std::string_view directive, syntax::Space& space);

/// `.reg .b32 %r<5>, %x;` from the directive up to and with the semicolon.
std::vector<syntax::Declaration> parse_declarations(TokenStream& tokens, bool is_extern);

/// `( .param .u64 a, .reg .b32 b )` of a function, an entry or a prototype.
std::vector<syntax::Declaration> parse_parameters(TokenStream& tokens);

} // namespace cudamod::emulator::ptx
