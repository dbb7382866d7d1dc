// The table behind cuGetProcAddress, and the entry points that only refuse. This file sees no
// prototypes: it deals in addresses, and a refusal takes whatever arguments its caller passes.
// CUresult is an int here.
#include "emulator/entry_points.h"

#include "emulator/refusal.h"

#define CUDAMOD_EXPORT extern "C" __attribute__((visibility("default")))

#define CUDAMOD_ENTRY(name, version, symbol) CUDAMOD_EXPORT int symbol();
#define CUDAMOD_REFUSED(name, version, symbol)                                                     \
    CUDAMOD_EXPORT int symbol() {                                                                  \
        return cudamod::emulator::refuse(#name);                                                   \
    }
#include "emulator/entry_point_list.h"

namespace cudamod::emulator {
namespace {

constexpr EntryPoint kEntryPoints[] = {
#define CUDAMOD_ENTRY(name, version, symbol) {#name, version, #symbol, symbol, true},
#define CUDAMOD_REFUSED(name, version, symbol) {#name, version, #symbol, symbol, false},
#include "emulator/entry_point_list.h"
};

} // namespace

std::span<const EntryPoint> entry_points() {
    return kEntryPoints;
}

} // namespace cudamod::emulator
