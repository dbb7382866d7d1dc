#include "handles/device_memory.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/registry.h"
#include "handles/retirement.h"

#include <string>

namespace cudamod::handles {

static_assert(offsetof(DeviceMemoryBox, raw) == 0);

namespace {

bool has_pools(int device) {
    int supported = 0;
    driver::check(driver::table.cuDeviceGetAttribute(
                      &supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device),
                  "cuDeviceGetAttribute", "memory pools supported");
    return supported != 0;
}

CUresult free_in_order(CUdeviceptr raw, const StreamBox& stream) {
    CUcontext popped;
    CUresult pushed = driver::table.cuCtxPushCurrent(stream.context);
    if (pushed != CUDA_SUCCESS) return pushed;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream.raw != CU_STREAM_LEGACY) driver::table.cuStreamIsCapturing(stream.raw, &capture);
    // A free that was captured would become a node of somebody's graph; the legacy stream never
    // captures.
    CUstream order = capture == CU_STREAM_CAPTURE_STATUS_NONE ? stream.raw : CU_STREAM_LEGACY;
    CUresult status = driver::table.cuMemFreeAsync(raw, order);
    driver::table.cuCtxPopCurrent(&popped);
    return status;
}

CUresult free_at_once(CUdeviceptr raw, CUcontext context) {
    CUcontext popped;
    CUresult pushed = driver::table.cuCtxPushCurrent(context);
    if (pushed != CUDA_SUCCESS) return pushed;
    CUresult status = driver::table.cuMemFree(raw);
    driver::table.cuCtxPopCurrent(&popped);
    return status;
}

} // namespace

DeviceMemoryBox::~DeviceMemoryBox() {
    registry<DeviceMemoryBox>().erase_expired(raw);
    const StreamBox& stream = box_of<StreamBox>(free_on);
    if (pooled)
        destroy("cuMemFreeAsync", kKind, raw, false, [&] { return free_in_order(raw, stream); });
    else
        destroy("cuMemFree", kKind, raw, true, [&] { return free_at_once(raw, stream.context); });
}

DeviceMemoryHandle allocate(const StreamHandle& stream, std::size_t size) {
    const StreamBox& order = box_of<StreamBox>(stream);
    ContextScope scope(order.context);
    bool pooled = has_pools(order.device);
    CUdeviceptr raw = 0;
    auto attempt = [&] {
        return pooled ? driver::table.cuMemAllocAsync(&raw, size, order.raw)
                      : driver::table.cuMemAlloc(&raw, size);
    };
    CUresult status = attempt();
    if (status == CUDA_ERROR_OUT_OF_MEMORY && reclaim() > 0) status = attempt();
    driver::check(status, pooled ? "cuMemAllocAsync" : "cuMemAlloc", [&] {
        return std::to_string(size) + " bytes on device " + std::to_string(order.device);
    });
    auto box = make_box<DeviceMemoryBox>(raw, size, pooled, stream);
    registry<DeviceMemoryBox>().insert(box);
    return alias<DeviceMemoryBox>(std::move(box));
}

} // namespace cudamod::handles
