/// The driver table: one pointer per selected driver function, shared by the C++ code and by CFFI's
/// generated C, so this header is C as well as C++.
///
/// `driver::table.cuMemAlloc(&address, size)` calls the driver. The header's own macros rename the
/// member and its use alike (`cuMemAlloc_v2`), so each member has exactly the header's type and
/// nothing links against the driver.
///
/// Every slot starts as a function that opens the driver, finds the entry point, stores it in the
/// slot and calls it. It answers CUDA_ERROR_NOT_INITIALIZED when no driver can be opened and
/// CUDA_ERROR_NOT_FOUND when the driver has no such function; driver::raise then knows which.
///
/// Slots are written atomically, at most once, with the same value by every thread; they are read
/// without synchronisation, which every supported processor does in one piece.
#pragma once

#include <cuda.h>

#include "driver_functions.h"

#ifdef __cplusplus
#define CUDAMOD_DRIVER_SLOT(name) decltype(&name) name;
extern "C" {
#else
#define CUDAMOD_DRIVER_SLOT(name) __typeof__(&name) name;
#endif

struct cudamod_driver_table_type {
    CUDAMOD_DRIVER_FUNCTIONS(CUDAMOD_DRIVER_SLOT)
};

extern __attribute__((visibility("hidden"))) struct cudamod_driver_table_type cudamod_driver_table;

#undef CUDAMOD_DRIVER_SLOT

#ifdef __cplusplus
}

namespace cudamod::driver {

using Table = cudamod_driver_table_type;

inline constexpr Table& table = cudamod_driver_table;

} // namespace cudamod::driver
#endif
