#include "emulator/call.h"

#include "emulator/injection.h"
#include "emulator/journal.h"
#include "emulator/logs.h"

namespace cudamod::emulator {
namespace {

thread_local std::string arguments_of_call;

} // namespace

CUresult admit(const char* call, bool before_init, unsigned attention_now) {
    if (!before_init) {
        if (attention_now & kNotInitialized) return CUDA_ERROR_NOT_INITIALIZED;
        if (attention_now & kShutDown) return CUDA_ERROR_DEINITIALIZED;
        if ((attention_now & kCallbacks) && callback_depth) {
            logs::say("A host callback may not call the driver");
            return CUDA_ERROR_NOT_PERMITTED;
        }
    }
    return attention_now & kInjection ? injection::take(call) : CUDA_SUCCESS;
}

void note_arguments(std::string summary) {
    arguments_of_call = std::move(summary);
}

void finish(const char* call, CUresult status, unsigned attention_now) {
    if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY) logs::deliver(call, status);
    if (attention_now & kJournal) journal::write(call, std::move(arguments_of_call), status);
}

} // namespace cudamod::emulator
