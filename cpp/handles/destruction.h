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

std::string describe(const char* noun, unsigned long long raw);

/// The one path on which driver objects are destroyed. `blocks`: the driver may wait in this call.
template <class Destroy>
void destroy(const char* call, const char* noun, unsigned long long raw, bool blocks,
             Destroy&& call_driver) noexcept {
    if (!driver_is_ours()) return;
    CUresult status;
    {
        RelaxedCapture relaxed;
        if (blocks) {
            InterpreterUnlocked unlocked;
            status = call_driver();
        } else {
            status = call_driver();
        }
    }
    if (status != CUDA_SUCCESS && status != CUDA_ERROR_DEINITIALIZED) {
        try {
            report(status, call, describe(noun, raw));
        } catch (...) {
            report(status, call, {});
        }
    }
}

} // namespace cudamod::handles
