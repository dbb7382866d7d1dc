#include "emulator/handle_table.h"

#include <new>
#include <sys/mman.h>

namespace cudamod::emulator {
namespace {

constexpr unsigned kFamilies = 16;

std::uintptr_t reserve_all() {
    void* reserved = mmap(nullptr, kFamilies * kHandleRangeBytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) throw std::bad_alloc();
    return reinterpret_cast<std::uintptr_t>(reserved);
}

} // namespace

std::uintptr_t handle_range(unsigned family) {
    static const std::uintptr_t base = reserve_all();
    return base + family * kHandleRangeBytes;
}

} // namespace cudamod::emulator
