#pragma once

#include "handles/report.h"

#include <cuda.h>

#include <string>
#include <utility>

namespace cudamod::handles {

/// False when a destructor has to leave the driver alone: never opened, another process after fork,
/// or the interpreter is finalising. A leak is preferred to a dangling pointer.
bool driver_is_ours() noexcept;

/// From here on destructors leave the driver alone (interpreter finalisation).
void stop_destroying() noexcept;

/// Lets the thread's interpreter lock go while a destructor waits for the driver. The layer above
/// installs it; without one the calls run as they are.
struct InterpreterLock {
    void* (*release)() = nullptr;
    void (*acquire)(void*) = nullptr;
};
void set_interpreter_lock(InterpreterLock lock) noexcept;

/// Makes the calling thread's capture mode relaxed: in global mode a destroying call made while any
/// thread captures fails with 900 and invalidates that capture.
class RelaxedCapture {
  public:
    RelaxedCapture() noexcept;
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool exchanged_ = false;
};

class InterpreterUnlocked {
  public:
    InterpreterUnlocked() noexcept;
    ~InterpreterUnlocked();
    InterpreterUnlocked(const InterpreterUnlocked&) = delete;
    InterpreterUnlocked& operator=(const InterpreterUnlocked&) = delete;

  private:
    void* state_ = nullptr;
};

/// Ends a box whose last handle is gone: at once, or, where the driver refuses every call (inside
/// of a host function), at the next public call.
void end_box(void* box, void (*end)(void*)) noexcept;

/// Ends the boxes that waited for that; false where the driver still refuses.
bool end_postponed_boxes() noexcept;

std::string describe(const char* noun, unsigned long long raw);

/// How a destruction ended, and in which call where that is not the destroying one.
struct Ended {
    CUresult status;
    const char* call = nullptr;

    Ended(CUresult status_, const char* call_ = nullptr) : status(status_), call(call_) {}
};

/// The one path on which driver objects are destroyed. `call_driver` answers a status or
/// Ended. `blocks`: the driver may wait in this call.
template <class Destroy>
void destroy(const char* call, const char* noun, unsigned long long raw, bool blocks,
             Destroy&& call_driver) noexcept {
    if (!driver_is_ours()) return;
    Ended ended = CUDA_SUCCESS;
    {
        RelaxedCapture relaxed;
        if (blocks) {
            InterpreterUnlocked unlocked;
            ended = call_driver();
        } else {
            ended = call_driver();
        }
    }
    if (ended.status != CUDA_SUCCESS && ended.status != CUDA_ERROR_DEINITIALIZED) {
        if (ended.call) call = ended.call;
        try {
            report(ended.status, call, describe(noun, raw));
        } catch (...) {
            report(ended.status, call, {});
        }
    }
}

} // namespace cudamod::handles
