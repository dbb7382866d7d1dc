#pragma once

#include "emulator/api.h"

#include <cstdint>
#include <string>

namespace cudamod::emulator::injection {

/// Makes the `nth` call of `call` from now on (1: the next) answer `status` without running. `call`
/// is a name as in entry_point_list.h, or
/// "*" for any.
void arm(std::string call, std::uint64_t nth, CUresult status);

/// Arms what a specification like "cuMemAlloc:2:2,cuLaunchKernelEx:1:719" says; false if it cannot
/// be read.
bool arm_all(const std::string& specification);

void disarm_all();

/// How many armed failures have not happened yet.
std::size_t armed();

/// Counts a call: the status that it must answer, or CUDA_SUCCESS.
CUresult take(const char* call);

} // namespace cudamod::emulator::injection
