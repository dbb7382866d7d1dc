#pragma once

// cuda.h as the driver itself sees it: every historical declaration, no macro that renames a
// function, so that each definition here is compiled against NVIDIA's prototype of exactly that
// symbol.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#define CUDAMOD_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

/// A second exported symbol for a function whose ABI did not change between two versions.
#define CUDAMOD_API_ALIAS(symbol, target)                                                          \
    extern "C" __attribute__((visibility("default"), alias(#target))) decltype(target) symbol
