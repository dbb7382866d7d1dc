#include "emulator/call.h"

#include "emulator/capture.h"
#include "emulator/injection.h"
#include "emulator/journal.h"
#include "emulator/logs.h"
#include "emulator/user_object.h"

#include <new>

namespace cudamod::emulator {
namespace {

/// What a call that needs attention answers without running, or CUDA_SUCCESS.
CUresult admit(const CallTraits& traits, unsigned now) {
    if (!traits.before_init) {
        if (now & kNotInitialized) return CUDA_ERROR_NOT_INITIALIZED;
        if (now & kShutDown) return CUDA_ERROR_DEINITIALIZED;
        if ((now & kCallbacks) && callback_depth) {
            logs::say("A host callback may not call the driver");
            return CUDA_ERROR_NOT_PERMITTED;
        }
    }
    if (now & kInjection) {
        const CUresult injected = injection::take(traits.name);
        if (injected != CUDA_SUCCESS) return injected;
    }
    return now & kCaptures ? admit_in_captures(traits.name) : CUDA_SUCCESS;
}

CUresult run_body(const CallTraits& traits, Body body) {
    if (!traits.locked) return body();
    std::lock_guard lock(driver_mutex());
    return body();
}

} // namespace

CUresult run_call(const CallTraits& traits, Body body, const Argument* arguments,
                  std::size_t count) noexcept {
    const unsigned now = attention.load(std::memory_order_relaxed);
    CUresult status = CUDA_SUCCESS;
    std::string summary;
    try {
        if (now) [[unlikely]] {
            if (now & kJournal) summary = summarize(arguments, count);
            status = admit(traits, now);
        }
        if (status == CUDA_SUCCESS) status = run_body(traits, body);
    } catch (const Failure& failure) {
        status = failure.status;
    } catch (const std::bad_alloc&) {
        status = CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        status = CUDA_ERROR_UNKNOWN;
    }
    if (attention.load(std::memory_order_relaxed) & kUserObjects) [[unlikely]]
        end_user_objects();
    if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY)
        logs::deliver(traits.name, status);
    if (now & kJournal) [[unlikely]]
        journal::write(traits.name, std::move(summary), status);
    return status;
}

} // namespace cudamod::emulator
