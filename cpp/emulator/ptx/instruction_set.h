/// The handlers of arithmetic and memory instructions.
#pragma once

#include "emulator/ptx/code.h"
#include "emulator/ptx/form.h"

namespace cudamod::emulator::ptx {

/// Memory instructions: slots 0..7 hold the values, this one the 64-bit address.
constexpr unsigned kAddressSlot = 8;

struct InstructionSet {
    /// Integer, Logic, Float, Half, Approximate, Compare, Convert and Video. Null: no such
    /// combination.
    Handler (*arithmetic)(const Form& form);
    /// What arithmetic handlers expect in Instruction::extra, and in ::immediate.
    std::uint32_t (*settings)(const Form& form);
    Handler (*load)(unsigned bytes, unsigned vector, Where where);
    Handler (*store)(unsigned bytes, unsigned vector, Where where);
    /// Kernel parameters: one value for all lanes, at Instruction::immediate.
    Handler (*load_parameter)(unsigned bytes, unsigned vector);
    /// slots[0] = slots[1], truncated or extended between register widths.
    Handler (*resize)(unsigned to_bytes, unsigned from_bytes, bool sign_extend);
    /// slots[0] = slots[1] + immediate, 64 bits.
    Handler add_immediate;
};

const InstructionSet& instruction_set();

} // namespace cudamod::emulator::ptx
