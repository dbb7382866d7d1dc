#pragma once

#include <cuda.h>

namespace cudamod::handles {

/// The number of devices. Opens the driver.
int device_count();

/// The primary context of a device, retained once for the life of the process. `device` must be in
/// range.
CUcontext primary_context(int device);

/// The same, or null when nobody has asked for it yet; no driver call.
CUcontext known_primary_context(int device) noexcept;

/// The calling thread's current context, or null. Opens the driver.
CUcontext current_context();

/// The device of the current context, or -1 when there is none.
int current_device();

/// The device that a context lives on.
int device_of(CUcontext context);

/// Takes the context that a push made current off the thread again. A failure is reported, since
/// whoever leaves has nobody to tell.
void pop_context() noexcept;

/// Makes a context current for a scope; the caller's is as it was afterwards. No driver call but
/// one query when it is current already.
class ContextScope {
  public:
    explicit ContextScope(CUcontext context);
    ~ContextScope();
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;

  private:
    bool pushed_ = false;
};

} // namespace cudamod::handles
