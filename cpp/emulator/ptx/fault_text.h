/// What faults and findings say.
#pragma once

#include "emulator/ptx/code.h"

#include <string>

namespace cudamod::emulator::ptx {

std::string address_text(std::uint64_t address); ///< "0x1f"
std::string triple_text(const Dim3& value);      ///< "(1,2,3)"
/// The instruction's source on one line.
std::string instruction_text(const Code& code, const Instruction& i);

} // namespace cudamod::emulator::ptx
