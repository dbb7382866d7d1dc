#include "launch/kernel.h"

#include "driver/library.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"

#include <stdexcept>

namespace cudamod::launch {

Kernel::Kernel(handles::KernelHandle handle, std::optional<std::vector<Type>> types,
               std::shared_ptr<const void> origin)
    : handle_(std::move(handle)), types_(std::move(types)), origin_(std::move(origin)),
      allowed_(new std::atomic<unsigned>[static_cast<std::size_t>(handles::device_count())]()),
      resident_(new std::atomic<CUcontext>[static_cast<std::size_t>(handles::device_count())]()) {}

const Layout& Kernel::layout(CUcontext context) const {
    if (const Layout* known = known_layout()) return *known;
    std::optional<std::vector<Extent>> extents;
    {
        handles::ContextScope scope(context);
        extents = extents_of(raw(), name());
    }
    if (!extents && !types_)
        throw std::invalid_argument(
            "kernel '" + name() +
            "': the parameters are not known (the driver tells them from CUDA 12.4 on); "
            "give a signature to bind");
    std::unique_ptr<const Layout> made;
    try {
        made = std::make_unique<const Layout>(make_layout(name(), extents, types_));
    } catch (const std::invalid_argument&) {
        // A mangled name may lie (an extern "C" symbol that looks like one): the driver's word
        // counts.
        if (!extents) throw;
        made = std::make_unique<const Layout>(make_layout(name(), extents, std::nullopt));
    }
    std::lock_guard lock(mutex_);
    if (!owned_layout_) {
        owned_layout_ = std::move(made);
        layout_.store(owned_layout_.get(), std::memory_order_release);
    }
    return *owned_layout_;
}

Layout Kernel::layout_by(const std::vector<Type>& types, CUcontext context) const {
    handles::ContextScope scope(context);
    return make_layout(name(), extents_of(raw(), name()), types);
}

void Kernel::load(CUcontext context) const {
    handles::ContextScope scope(context);
    CUfunction function = nullptr;
    auto subject = [&] { return "kernel '" + name() + "'"; };
    driver::check(driver::table.cuKernelGetFunction(&function, raw()), "cuKernelGetFunction",
                  subject);
    // Before 12.4 a function that has been fetched is as loaded as it can be made.
    if (driver::has("cuFuncLoad"))
        driver::check(driver::table.cuFuncLoad(function), "cuFuncLoad", subject);
    note_resident(handles::current_device(), context);
}

int Kernel::attribute(CUfunction_attribute attribute, int device) const {
    int value = 0;
    driver::check(driver::table.cuKernelGetAttribute(&value, attribute, raw(), device),
                  "cuKernelGetAttribute", [&] {
                      return "kernel '" + name() + "', attribute " + std::to_string(attribute) +
                             ", device " + std::to_string(device);
                  });
    return value;
}

void Kernel::set_attribute(CUfunction_attribute attribute, const char* attribute_name, int value,
                           int device) const {
    const bool dynamic = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (dynamic) check_dynamic_shared(device, value);
    driver::check(driver::table.cuKernelSetAttribute(attribute, value, raw(), device),
                  "cuKernelSetAttribute", [&] {
                      return "kernel '" + name() + "', " + attribute_name + " = " +
                             std::to_string(value) + ", device " + std::to_string(device);
                  });
    // What a launch may ask for is found out anew: it may be less now.
    if (dynamic) allowed_[device].store(0, std::memory_order_relaxed);
}

void Kernel::check_dynamic_shared(int device, long long bytes) const {
    int fixed = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, device);
    int limit = 0;
    driver::check(driver::table.cuDeviceGetAttribute(
                      &limit, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device),
                  "cuDeviceGetAttribute", "shared memory per block, opt-in");
    if (bytes > static_cast<long long>(limit) - fixed)
        throw std::invalid_argument(
            "kernel '" + name() + "': " + std::to_string(bytes) +
            " bytes of dynamic shared memory asked; device " + std::to_string(device) + " allows " +
            std::to_string(limit) +
            " per block, of which the kernel's static shared memory takes " +
            std::to_string(fixed));
}

void Kernel::raise_dynamic_shared(int device, unsigned bytes) const {
    // Held during the calls, alone among our locks: none of them waits for the device, and a lower
    // value must not follow a higher one that another thread is about to launch with.
    std::lock_guard lock(mutex_);
    auto& allowed = allowed_[device];
    unsigned current =
        static_cast<unsigned>(attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, device));
    if (bytes > current) {
        check_dynamic_shared(device, bytes);
        driver::check(
            driver::table.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                               static_cast<int>(bytes), raw(), device),
            "cuKernelSetAttribute", [&] {
                return "kernel '" + name() + "', " + std::to_string(bytes) +
                       " bytes of dynamic shared memory, device " + std::to_string(device);
            });
        current = bytes;
    }
    allowed.store(current, std::memory_order_relaxed);
}

} // namespace cudamod::launch
