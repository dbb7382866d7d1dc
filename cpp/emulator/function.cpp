#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/module.h"

using namespace cudamod::emulator;

CUDAMOD_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    return locked_call(
        "cuFuncGetAttribute",
        [&] {
            require_pointer(value, "the value");
            *value = read_attribute(find_function(handle)->view, attribute);
        },
        value, static_cast<int>(attribute), handle);
}

CUDAMOD_API cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    return locked_call(
        "cuFuncSetAttribute",
        [&] { write_attribute(find_function(handle)->view, attribute, value); }, handle,
        static_cast<int>(attribute), value);
}

CUDAMOD_API cuFuncGetModule(CUmodule* module, CUfunction handle) {
    return locked_call(
        "cuFuncGetModule",
        [&] {
            require_pointer(module, "the module");
            *module = find_function(handle)->module->handle;
        },
        module, handle);
}

CUDAMOD_API cuFuncGetName(const char** name, CUfunction handle) {
    return locked_call(
        "cuFuncGetName",
        [&] {
            require_pointer(name, "the name");
            *name = find_function(handle)->view.kernel->name.c_str();
        },
        static_cast<const void*>(name), handle);
}

CUDAMOD_API cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
    return locked_call(
        "cuFuncGetParamInfo",
        [&] { read_parameter(find_function(handle)->view, index, offset, size); }, handle, index,
        offset, size);
}

CUDAMOD_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
    return locked_call(
        "cuFuncIsLoaded",
        [&] {
            require_pointer(state, "the state");
            *state = find_function(handle)->loaded ? CU_FUNCTION_LOADING_STATE_LOADED
                                                   : CU_FUNCTION_LOADING_STATE_UNLOADED;
        },
        state, handle);
}

CUDAMOD_API cuFuncLoad(CUfunction handle) {
    return locked_call("cuFuncLoad", [&] { find_function(handle)->loaded = true; }, handle);
}

CUDAMOD_API cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
    return locked_call(
        "cuFuncSetCacheConfig", [&] { find_function(handle); }, handle, static_cast<int>(config));
}

CUDAMOD_API cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
    return locked_call(
        "cuFuncSetSharedMemConfig", [&] { find_function(handle); }, handle,
        static_cast<int>(config));
}
