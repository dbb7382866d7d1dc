/// %tid.x, %laneid, %clock64 ... : names, types and values.
#pragma once

#include "emulator/ptx/code.h"

#include <optional>
#include <string_view>

namespace cudamod::emulator::ptx {

struct SpecialRegister {
    Type type = Type::U32;
    std::uint32_t id = 0; ///< for read_special's Instruction::extra
};

/// `name` with its element: "%tid.x".
std::optional<SpecialRegister> special_register(std::string_view name, std::string_view element);

/// slots[0] = the register named by Instruction::extra.
void read_special(Warp& w, const Instruction& i, std::uint32_t mask);

} // namespace cudamod::emulator::ptx
