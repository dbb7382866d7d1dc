/// The kinds of cvt beside the plain one.
#pragma once

#include "emulator/ptx/ops/floats.h"

namespace cudamod::emulator::ptx::ops {

/// To or from f16 and bf16, one element.
Handler select_small_convert(const Form& form);
/// What an instruction of either kind carries in Instruction::extra.
std::uint32_t convert_settings(const Form& form);
/// Packed pairs, fp8, tf32, .relu, .satfinite and cvt.pack.
Handler select_packed_convert(const Form& form);

} // namespace cudamod::emulator::ptx::ops
