#include "driver/table.h"

#include <cstddef>

#include "driver/functions.h"
#include "driver/host_callbacks.h"
#include "driver/library.h"
#include "driver/status.h"

namespace cudamod::driver {
namespace {

/// Finds the entry point of a slot and stores it there. On failure answers the status to return.
CUresult resolve(std::size_t slot, void** place, void** entry) noexcept {
    const Opened* driver = nullptr;
    try {
        driver = &open();
    } catch (...) {
        note_unopened(std::current_exception());
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    CUresult status = CUDA_SUCCESS;
    *entry = find_entry(*driver, slot, status);
    if (*entry == nullptr) {
        if (status != CUDA_SUCCESS) return status;
        const Function& function = functions()[slot];
        note_missing({function.name, function.needed(), driver->version});
        return CUDA_ERROR_NOT_FOUND;
    }
    *entry = counting_host_callbacks(functions()[slot].name, *entry);
    __atomic_store_n(place, *entry, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

/// The slot's own offset is its number: the table is an array of equal pointers.
template <std::size_t Offset, class Pointer>
struct FirstCall;

template <std::size_t Offset, class... Arguments>
struct FirstCall<Offset, CUresult (*)(Arguments...)> {
    using Pointer = CUresult (*)(Arguments...);

    static CUresult CUDAAPI call(Arguments... arguments) noexcept {
        void* entry = nullptr;
        void** const place = reinterpret_cast<void**>(reinterpret_cast<char*>(&table) + Offset);
        const CUresult status = resolve(Offset / sizeof(Pointer), place, &entry);
        if (status != CUDA_SUCCESS) return status;
        return reinterpret_cast<Pointer>(entry)(arguments...);
    }
};

} // namespace
} // namespace cudamod::driver

constinit cudamod_driver_table_type cudamod_driver_table = {
#define CUDAMOD_FIRST_CALL(name)                                                                   \
    &cudamod::driver::FirstCall<offsetof(cudamod_driver_table_type, name), decltype(&name)>::call,
    CUDAMOD_DRIVER_FUNCTIONS(CUDAMOD_FIRST_CALL)
#undef CUDAMOD_FIRST_CALL
};
