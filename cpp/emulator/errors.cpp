#include "emulator/errors.h"

#include "emulator/call.h"

namespace cudamod::emulator {

const char* error_name(CUresult status) {
    switch (static_cast<int>(status)) {
#define CUDAMOD_STATUS(number, name, sentence)                                                     \
    case number:                                                                                   \
        return "CUDA_" #name;
#include "emulator/error_list.h"
    default:
        return "unrecognized error code";
    }
}

const char* error_sentence(CUresult status) {
    switch (static_cast<int>(status)) {
#define CUDAMOD_STATUS(number, name, sentence)                                                     \
    case number:                                                                                   \
        return sentence;
#include "emulator/error_list.h"
    default:
        return nullptr;
    }
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

CUDAMOD_API cuGetErrorName(CUresult status, const char** name) {
    return early_call(
        "cuGetErrorName",
        [&] {
            require_pointer(name, "the name");
            *name = error_sentence(status) ? error_name(status) : nullptr;
            if (!*name)
                fail(CUDA_ERROR_INVALID_VALUE, "%d is no status of this driver",
                     static_cast<int>(status));
        },
        status, name);
}

CUDAMOD_API cuGetErrorString(CUresult status, const char** sentence) {
    return early_call(
        "cuGetErrorString",
        [&] {
            require_pointer(sentence, "the sentence");
            *sentence = error_sentence(status);
            if (!*sentence)
                fail(CUDA_ERROR_INVALID_VALUE, "%d is no status of this driver",
                     static_cast<int>(status));
        },
        status, sentence);
}
