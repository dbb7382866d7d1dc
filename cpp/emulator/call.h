#pragma once

#include "emulator/api.h"
#include "emulator/failure.h"
#include "emulator/process.h"
#include "emulator/summary.h"

#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace cudamod::emulator {

/// What is looked at before a call that needs attention: nothing, or the status that it answers
/// without running.
CUresult admit(const char* call, bool before_init, unsigned attention_now);

/// Logs a failure and writes the journal.
void finish(const char* call, CUresult status, unsigned attention_now);

/// Remembers the arguments for the journal's next entry of this thread.
void note_arguments(std::string summary);

enum class Holding { nothing, driver_mutex };

/// Every entry point is one of these around its body: the gate (initialised, not forked, not in a
/// callback), fault injection, the lock, the journal, and the one place where a Failure becomes a
/// status. A body returns nothing, or a status that is no failure (CUDA_ERROR_NOT_READY).
template <bool kBeforeInit, Holding kHolding, class Body, class... Arguments>
CUresult run_call(const char* name, Body& body, const Arguments&... arguments) noexcept {
    const unsigned now = attention.load(std::memory_order_relaxed);
    CUresult status = CUDA_SUCCESS;
    try {
        if (now) [[unlikely]] {
            if (now & kJournal) note_arguments(summarize(arguments...));
            status = admit(name, kBeforeInit, now);
        }
        if (status == CUDA_SUCCESS) {
            std::unique_lock<std::mutex> lock(driver_mutex(), std::defer_lock);
            if constexpr (kHolding == Holding::driver_mutex) lock.lock();
            if constexpr (std::is_void_v<std::invoke_result_t<Body&>>)
                body();
            else
                status = body();
        }
    } catch (const Failure& failure) {
        status = failure.status;
    } catch (const std::bad_alloc&) {
        status = CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        status = CUDA_ERROR_UNKNOWN;
    }
    if (now || status != CUDA_SUCCESS) [[unlikely]]
        finish(name, status, now);
    return status;
}

/// A call that holds the driver's lock throughout.
template <class Body, class... Arguments>
CUresult locked_call(const char* name, Body&& body, const Arguments&... arguments) noexcept {
    return run_call<false, Holding::driver_mutex>(name, body, arguments...);
}

/// A call that takes the lock itself, for as long as it validates.
template <class Body, class... Arguments>
CUresult unlocked_call(const char* name, Body&& body, const Arguments&... arguments) noexcept {
    return run_call<false, Holding::nothing>(name, body, arguments...);
}

/// A call that works before cuInit; it holds no lock.
template <class Body, class... Arguments>
CUresult early_call(const char* name, Body&& body, const Arguments&... arguments) noexcept {
    return run_call<true, Holding::nothing>(name, body, arguments...);
}

} // namespace cudamod::emulator
