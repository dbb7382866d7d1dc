#include "emulator/call.h"
#include "emulator/entry_points.h"
#include "emulator/null_launch.h"
#include "emulator/settings.h"

#include <algorithm>
#include <cstring>

using namespace cudamod::emulator;

namespace {

struct Found {
    void* address = nullptr;
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

/// The newest ABI of the function that is no newer than `version` and than this driver.
Found find_entry_point(const char* name, int version) {
    Found found;
    int newest = -1;
    const int limit = std::min(version, settings().driver_version);
    for (const EntryPoint& entry : entry_points()) {
        if (std::strcmp(entry.name, name) != 0 || entry.version > settings().driver_version)
            continue;
        if (entry.version > limit) {
            if (!found.address) found.result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
            continue;
        }
        if (entry.version <= newest) continue;
        newest = entry.version;
        void* null_launch = settings().null_launch ? null_entry_point(entry.symbol) : nullptr;
        found = {null_launch ? null_launch : reinterpret_cast<void*>(entry.address),
                 CU_GET_PROC_ADDRESS_SUCCESS};
    }
    return found;
}

void get_address(const char* name, void** address, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* result) {
    require_pointer(name, "the name");
    require_pointer(address, "the address");
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        fail(CUDA_ERROR_NOT_SUPPORTED,
             "Functions whose default stream is the thread's are not emulated");
    }
    if (flags & ~cuuint64_t{CU_GET_PROC_ADDRESS_LEGACY_STREAM}) {
        fail(CUDA_ERROR_INVALID_VALUE, "Flags 0x%llx are unknown",
             static_cast<unsigned long long>(flags));
    }
    const Found found = find_entry_point(name, version);
    *address = found.address;
    if (result) *result = found.result;
    if (!found.address) {
        if (found.result == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) {
            fail(CUDA_ERROR_NOT_FOUND, "%s is newer than version %d", name, version);
        }
        fail(CUDA_ERROR_NOT_FOUND, "%s is not a function of this driver", name);
    }
}

} // namespace

CUDAMOD_API cuGetProcAddress(const char* name, void** address, int version, cuuint64_t flags) {
    return early_call(
        "cuGetProcAddress", [&] { get_address(name, address, version, flags, nullptr); }, name,
        address, version, flags);
}

CUDAMOD_API cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult* result) {
    return early_call(
        "cuGetProcAddress", [&] { get_address(name, address, version, flags, result); }, name,
        address, version, flags, result);
}

CUDAMOD_API cuGetExportTable(const void** table, const CUuuid*) {
    return early_call(
        "cuGetExportTable",
        [&] {
            if (table) *table = nullptr;
            fail(CUDA_ERROR_NOT_FOUND, "The driver's private tables are not emulated");
        },
        table);
}
