#include "handles/context.h"

#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/report.h"

#include <array>
#include <atomic>
#include <mutex>

namespace cudamod::handles {

namespace {

// More than any system has had in one process; a device beyond it is refused by the driver first.
constexpr int kMaxDevices = 256;
std::array<std::atomic<CUcontext>, kMaxDevices> primary_contexts{};
std::mutex retain_mutex;

} // namespace

int device_count() {
    int count = 0;
    driver::check(driver::table.cuDeviceGetCount(&count), "cuDeviceGetCount");
    return count < kMaxDevices ? count : kMaxDevices;
}

CUcontext known_primary_context(int device) noexcept {
    return primary_contexts[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
}

CUcontext primary_context(int device) {
    if (CUcontext known = known_primary_context(device)) return known;
    CUcontext context = nullptr;
    // Retaining outside the lock may happen twice; the second reference is given back. A driver
    // call with the lock held could wait for a thread that waits for the lock.
    driver::check(driver::table.cuDevicePrimaryCtxRetain(&context, device),
                  "cuDevicePrimaryCtxRetain", [&] { return "device " + std::to_string(device); });
    bool ours = false;
    {
        std::lock_guard lock(retain_mutex);
        auto& slot = primary_contexts[static_cast<std::size_t>(device)];
        if (!slot.load(std::memory_order_relaxed)) {
            slot.store(context, std::memory_order_release);
            ours = true;
        }
    }
    if (!ours) driver::table.cuDevicePrimaryCtxRelease(device);
    return context;
}

CUcontext current_context() {
    CUcontext context = nullptr;
    driver::check(driver::table.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    return context;
}

int current_device() {
    CUdevice device = -1;
    CUresult status = driver::table.cuCtxGetDevice(&device);
    if (status == CUDA_ERROR_INVALID_CONTEXT) {
        driver::take_log(status);
        return -1;
    }
    driver::check(status, "cuCtxGetDevice");
    return device;
}

int device_of(CUcontext context) {
    ContextScope scope(context);
    CUdevice device = -1;
    driver::check(driver::table.cuCtxGetDevice(&device), "cuCtxGetDevice");
    return device;
}

void pop_context() noexcept {
    CUcontext popped;
    CUresult status = driver::table.cuCtxPopCurrent(&popped);
    if (status != CUDA_SUCCESS && status != CUDA_ERROR_DEINITIALIZED)
        report(status, "cuCtxPopCurrent", {});
}

ContextScope::ContextScope(CUcontext context) {
    if (current_context() == context) return;
    driver::check(driver::table.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    pushed_ = true;
}

ContextScope::~ContextScope() {
    if (pushed_) pop_context();
}

} // namespace cudamod::handles
