#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/stream.h"

using namespace cudamod::emulator;

CUDAMOD_API cuCtxGetLimit(size_t* value, CUlimit limit) {
    return locked_call(
        "cuCtxGetLimit",
        [&] {
            require_pointer(value, "the value");
            const auto context = current_context();
            const auto number = static_cast<unsigned>(limit);
            if (number >= kLimits) fail(CUDA_ERROR_INVALID_VALUE, "Limit %u is unknown", number);
            *value = context->limits[number];
        },
        value, static_cast<int>(limit));
}

CUDAMOD_API cuCtxSetLimit(CUlimit limit, size_t value) {
    return locked_call(
        "cuCtxSetLimit",
        [&] {
            const auto context = current_context();
            const auto number = static_cast<unsigned>(limit);
            if (number >= kLimits) fail(CUDA_ERROR_INVALID_VALUE, "Limit %u is unknown", number);
            if (number >= CU_LIMIT_SHMEM_SIZE)
                fail(CUDA_ERROR_UNSUPPORTED_LIMIT, "Limit %u can only be read", number);
            context->limits[number] = value;
        },
        static_cast<int>(limit), value);
}

CUDAMOD_API cuCtxGetCacheConfig(CUfunc_cache* config) {
    return locked_call(
        "cuCtxGetCacheConfig",
        [&] {
            require_pointer(config, "the configuration");
            *config = current_context()->cache_config;
        },
        config);
}

CUDAMOD_API cuCtxSetCacheConfig(CUfunc_cache config) {
    return locked_call(
        "cuCtxSetCacheConfig",
        [&] {
            if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
                fail(CUDA_ERROR_INVALID_VALUE, "Cache configuration %d is unknown",
                     static_cast<int>(config));
            }
            current_context()->cache_config = config;
        },
        static_cast<int>(config));
}

CUDAMOD_API cuCtxGetSharedMemConfig(CUsharedconfig* config) {
    return locked_call(
        "cuCtxGetSharedMemConfig",
        [&] {
            require_pointer(config, "the configuration");
            current_context();
            *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
        },
        config);
}

CUDAMOD_API cuCtxSetSharedMemConfig(CUsharedconfig config) {
    return locked_call(
        "cuCtxSetSharedMemConfig", [&] { current_context(); }, static_cast<int>(config));
}

CUDAMOD_API cuCtxResetPersistingL2Cache() {
    return locked_call("cuCtxResetPersistingL2Cache", [&] { current_context(); });
}

CUDAMOD_API cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
    return locked_call(
        "cuCtxGetExecAffinity",
        [&] {
            current_context();
            fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "Execution affinity is not emulated");
        },
        affinity, static_cast<int>(type));
}

CUDAMOD_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return locked_call(
        "cuCtxGetStreamPriorityRange",
        [&] {
            current_context();
            if (least) *least = kLeastPriority;
            if (greatest) *greatest = kGreatestPriority;
        },
        least, greatest);
}
