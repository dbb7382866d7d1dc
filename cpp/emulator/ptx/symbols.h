/// Names and what they stand for, in nested scopes.
#pragma once

#include "emulator/ptx/code.h"
#include "emulator/ptx/syntax.h"

#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cudamod::emulator::ptx {

struct Symbol {
    enum class Kind : std::uint8_t {
        Register,   ///< type, vector, slots
        Variable,   ///< global or constant; index of Code::variables
        Shared,     ///< index of Code::shared
        Local,      ///< offset in the frame's local memory: .local variables
        Param,      ///< the same, a .param of a call or a formal parameter of a .func
        EntryParam, ///< offset in the kernel's parameter block
        Function,   ///< index of Code::functions
        Label,      ///< index of the function's labels
        Targets,    ///< index into the function's branch target lists
        Prototype   ///< index into the function's prototypes
    };
    Kind kind = Kind::Register;
    Type type = Type::None;
    unsigned vector = 1;
    std::array<Slot, 4> slots{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
    std::uint32_t index = 0, offset = 0;
    std::uint64_t size = 0;
    bool is_constant = false; ///< Variable: in .const
};

/// `.reg .b32 %r<10>`
struct RegisterRange {
    Type type = Type::None;
    unsigned vector = 1;
    std::uint32_t count = 0;
};

struct Scope {
    std::unordered_map<std::string_view, Symbol> symbols;
    std::unordered_map<std::string_view, RegisterRange> ranges;
};

} // namespace cudamod::emulator::ptx
