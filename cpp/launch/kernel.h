#pragma once

#include "handles/kernel.h"
#include "handles/stream.h"
#include "launch/layout.h"

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace cudamod::launch {

/// A kernel as launches see it: its handle, its parameters once they are known, and for each device
/// how much dynamic shared memory it may be given. Shared by every view of the kernel; safe for any
/// thread.
class Kernel {
  public:
    /// `types`: what the image or the mangled name says of the parameters, where it says something.
    /// `origin`: whatever the layer above wants to find again with the kernel.
    Kernel(handles::KernelHandle handle, std::optional<std::vector<Type>> types,
           std::shared_ptr<const void> origin = nullptr);

    const handles::KernelHandle& handle() const { return handle_; }
    CUkernel raw() const { return *handle_; }
    const std::string& name() const { return handles::box_of<handles::KernelBox>(handle_).name; }
    const handles::LibraryHandle& library() const {
        return handles::box_of<handles::KernelBox>(handle_).library;
    }

    const std::shared_ptr<const void>& origin() const { return origin_; }

    /// The parameters when they are known already, or null.
    const Layout* known_layout() const { return layout_.load(std::memory_order_acquire); }

    /// The parameters, asked from the driver in `context` the first time. Raises
    /// std::invalid_argument when neither the driver (12.4) nor the image tells them.
    const Layout& layout(CUcontext context) const;

    /// The parameters by a signature that the caller gives.
    Layout layout_by(const std::vector<Type>& types, CUcontext context) const;

    /// Lets the kernel have `bytes` of dynamic shared memory on `device`: only ever raised, once.
    /// Raises std::invalid_argument beyond the device's opt-in limit less static shared memory.
    void allow_dynamic_shared(int device, unsigned bytes) const {
        if (bytes > allowed_[device].load(std::memory_order_relaxed))
            raise_dynamic_shared(device, bytes);
    }

    /// Whether the kernel is known to be resident where the stream runs, so that a launch loads
    /// nothing.
    bool is_resident(const handles::StreamBox& stream) const {
        return resident_[stream.device].load(std::memory_order_relaxed) == stream.context;
    }
    void note_resident(int device, CUcontext context) const {
        resident_[device].store(context, std::memory_order_relaxed);
    }

    /// Makes the kernel resident in `context`, so that no launch has to load it.
    void load(CUcontext context) const;

    int attribute(CUfunction_attribute attribute, int device) const;

    /// Sets what the driver lets be set, on one device. `name` is the attribute's in errors. Raises
    /// std::invalid_argument for more dynamic shared memory than the device has.
    void set_attribute(CUfunction_attribute attribute, const char* name, int value,
                       int device) const;

  private:
    void raise_dynamic_shared(int device, unsigned bytes) const;
    void check_dynamic_shared(int device, long long bytes) const;

    handles::KernelHandle handle_;
    std::optional<std::vector<Type>> types_;
    std::shared_ptr<const void> origin_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<const Layout> owned_layout_;
    mutable std::atomic<const Layout*> layout_{nullptr};
    mutable std::unique_ptr<std::atomic<unsigned>[]> allowed_;
    mutable std::unique_ptr<std::atomic<CUcontext>[]> resident_; // the last context, by device
};

} // namespace cudamod::launch
