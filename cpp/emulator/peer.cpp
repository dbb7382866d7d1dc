#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"

using namespace cudamod::emulator;

CUDAMOD_API cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
    return locked_call(
        "cuCtxEnablePeerAccess",
        [&] {
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %u", flags);
            const auto context = current_context(), peer = find_context(handle);
            if (context->device == peer->device)
                fail(CUDA_ERROR_INVALID_DEVICE, "Device %d is no peer of itself",
                     peer->device->ordinal);
            if (!context->peers.insert(peer->id).second) {
                fail(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
                     "Access to device %d is enabled already", peer->device->ordinal);
            }
        },
        handle, flags);
}

CUDAMOD_API cuCtxDisablePeerAccess(CUcontext handle) {
    return locked_call(
        "cuCtxDisablePeerAccess",
        [&] {
            const auto context = current_context(), peer = find_context(handle);
            if (!context->peers.erase(peer->id)) {
                fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "Access to device %d is not enabled",
                     peer->device->ordinal);
            }
        },
        handle);
}
