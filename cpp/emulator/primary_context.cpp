#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/teardown.h"

using namespace cudamod::emulator;

namespace {

/// Ends what lives in the primary context, after its work.
void end_primary(Device& device, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    drain(device.primary);
    lock.lock();
    if (device.primary->active) tear_down(*device.primary);
}

} // namespace

CUDAMOD_API cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice ordinal) {
    return locked_call(
        "cuDevicePrimaryCtxRetain",
        [&] {
            require_pointer(handle, "the context");
            Context& primary = *device_at(ordinal).primary;
            if (!primary.active) activate(primary);
            require_healthy(primary);
            ++primary.retained;
            *handle = primary.handle;
        },
        handle, ordinal);
}

CUDAMOD_API cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    return unlocked_call(
        "cuDevicePrimaryCtxRelease",
        [&] {
            std::unique_lock lock(driver_mutex());
            Device& device = device_at(ordinal);
            if (!device.primary->retained) {
                fail(CUDA_ERROR_INVALID_CONTEXT, "The primary context of device %d is not retained",
                     ordinal);
            }
            if (!--device.primary->retained) end_primary(device, lock);
        },
        ordinal);
}
CUDAMOD_API_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

CUDAMOD_API cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
    return unlocked_call(
        "cuDevicePrimaryCtxReset",
        [&] {
            std::unique_lock lock(driver_mutex());
            Device& device = device_at(ordinal);
            if (device.primary->active) end_primary(device, lock);
        },
        ordinal);
}
CUDAMOD_API_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

CUDAMOD_API cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
    return locked_call(
        "cuDevicePrimaryCtxGetState",
        [&] {
            require_pointer(flags, "the flags");
            require_pointer(active, "the state");
            const Context& primary = *device_at(ordinal).primary;
            *flags = primary.flags;
            *active = primary.active;
        },
        ordinal, flags, active);
}

CUDAMOD_API cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
    return locked_call(
        "cuDevicePrimaryCtxSetFlags",
        [&] {
            require_context_flags(flags);
            device_at(ordinal).primary->flags = flags;
        },
        ordinal, flags);
}
CUDAMOD_API_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);
