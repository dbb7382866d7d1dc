#include "emulator/ptx/instruction_set.h"

namespace cudamod::emulator::ptx {
namespace baseline {
extern const InstructionSet kInstructionSet;
}
#if defined(CUDAMOD_PTX_AVX2)
namespace avx2 {
extern const InstructionSet kInstructionSet;
}
#endif

const InstructionSet& instruction_set() {
#if defined(CUDAMOD_PTX_AVX2)
    static const bool wide =
        __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    if (wide) return avx2::kInstructionSet;
#endif
    return baseline::kInstructionSet;
}

} // namespace cudamod::emulator::ptx
