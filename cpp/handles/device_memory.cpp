#include "handles/device_memory.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/registry.h"
#include "handles/retirement.h"

#include <string>
#include <utility>

namespace cudamod::handles {

static_assert(offsetof(DeviceMemoryBox, raw) == 0);

namespace {

/// Calls the driver in a context; a context that can't be entered answers why.
template <class Call>
Ended in_context(CUcontext context, Call&& call) {
    CUresult pushed = driver::table.cuCtxPushCurrent(context);
    if (pushed != CUDA_SUCCESS) return {pushed, "cuCtxPushCurrent"};
    Ended ended = call();
    pop_context();
    return ended;
}

Ended free_now(const DeferredFree& free) {
    if (free.manner == FreeManner::InOrder) {
        const CUresult status = driver::table.cuMemFreeAsync(free.raw, *free.stream);
        if (status != CUDA_SUCCESS) return status;
        if (!free.pool)
            return {driver::table.cuStreamSynchronize(*free.stream), "cuStreamSynchronize"};
        const MemoryPoolBox& from = box_of<MemoryPoolBox>(free.pool);
        if (from.owned) from.end->frees.note(free.stream);
        return status;
    }
    const CUresult status =
        free.stream ? driver::table.cuStreamSynchronize(*free.stream) : CUDA_SUCCESS;
    const CUresult freed = free.manner == FreeManner::OnHost
                               ? driver::table.cuMemFreeHost(reinterpret_cast<void*>(free.raw))
                               : driver::table.cuMemFree(free.raw);
    if (freed != CUDA_SUCCESS) return freed;
    return {status, "cuStreamSynchronize"};
}

/// Frees it, or defers that: a free that was captured would become a node of somebody's graph, and
/// to wait for a stream that captures ends the capture.
Ended free_or_defer(const DeferredFree& free) {
    return in_context(free.context, [&]() -> Ended {
        if (!free.stream || !is_captured(free.stream)) return free_now(free);
        return defer_free(free) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    });
}

template <class Attempt>
void attempt_twice(const char* call, std::size_t size, const std::string& where,
                   Attempt&& attempt) {
    CUresult status = attempt();
    if (status == CUDA_ERROR_OUT_OF_MEMORY && reclaim() + reclaim_pools(true) > 0)
        status = attempt();
    driver::check(status, call, [&] { return std::to_string(size) + " bytes " + where; });
}

std::string where(const MemoryPoolHandle& pool) {
    const MemoryPoolBox& box = box_of<MemoryPoolBox>(pool);
    if (box.device() >= 0) return "on device " + std::to_string(box.device());
    return "of " + describe_pool(pool);
}

DeviceMemoryHandle keep(CUdeviceptr raw, std::size_t size, const MemoryPoolHandle& pool,
                        bool on_host, CUcontext context, const StreamHandle& free_on,
                        std::shared_ptr<const MemoryImport> import = {}) {
    auto box =
        make_box<DeviceMemoryBox>(raw, size, pool, on_host, context, free_on, std::move(import));
    registry<DeviceMemoryBox>().insert(box);
    return alias<DeviceMemoryBox>(std::move(box));
}

} // namespace

void free_memory(const DeferredFree& free) noexcept {
    const auto now_or_later = [&] { return free_or_defer(free); };
    switch (free.manner) {
    case FreeManner::InOrder:
        return destroy("cuMemFreeAsync", DeviceMemoryBox::kKind, free.raw, false, now_or_later);
    case FreeManner::AtOnce:
        return destroy("cuMemFree", DeviceMemoryBox::kKind, free.raw, true, now_or_later);
    case FreeManner::OnHost:
        return destroy("cuMemFreeHost", DeviceMemoryBox::kKind, free.raw, true, now_or_later);
    }
}

DeviceMemoryBox::~DeviceMemoryBox() {
    registry<DeviceMemoryBox>().erase_expired(raw);
    if (pool)
        free_memory(
            {raw, FreeManner::InOrder, box_of<StreamBox>(free_on).context, free_on, pool, import});
    else
        free_memory(
            {raw, on_host ? FreeManner::OnHost : FreeManner::AtOnce, context, free_on, {}, {}});
}

DeviceMemoryHandle allocate(const MemoryPoolHandle& pool, const StreamHandle& stream,
                            std::size_t size) {
    const StreamBox& order = box_of<StreamBox>(stream);
    free_deferred();
    ContextScope scope(order.context);
    CUdeviceptr raw = 0;
    attempt_twice("cuMemAllocFromPoolAsync", size, where(pool), [&] {
        return driver::table.cuMemAllocFromPoolAsync(&raw, size, *pool, order.raw);
    });
    return keep(raw, size, pool, false, order.context, stream);
}

DeviceMemoryHandle allocate_at_once(const StreamHandle& stream, std::size_t size) {
    const StreamBox& order = box_of<StreamBox>(stream);
    ContextScope scope(order.context);
    CUdeviceptr raw = 0;
    attempt_twice("cuMemAlloc", size, "on device " + std::to_string(order.device),
                  [&] { return driver::table.cuMemAlloc(&raw, size); });
    return keep(raw, size, {}, false, order.context, stream);
}

DeviceMemoryHandle allocate_pinned(CUcontext context, const StreamHandle& stream,
                                   std::size_t size) {
    ContextScope scope(context);
    void* host = nullptr;
    attempt_twice("cuMemAllocHost", size, "of pinned memory",
                  [&] { return driver::table.cuMemAllocHost(&host, size); });
    return keep(reinterpret_cast<CUdeviceptr>(host), size, {}, true, context, stream);
}

DeviceMemoryHandle adopt(const MemoryPoolHandle& pool, const StreamHandle& stream, CUdeviceptr raw,
                         std::size_t size, std::shared_ptr<const MemoryImport> import) {
    return keep(raw, size, pool, false, box_of<StreamBox>(stream).context, stream,
                std::move(import));
}

void free_in_order(const MemoryPoolHandle& pool, const StreamHandle& stream, CUdeviceptr raw) {
    Ended ended = CUDA_SUCCESS;
    {
        InterpreterUnlocked unlocked;
        ended = free_or_defer(
            {raw, FreeManner::InOrder, box_of<StreamBox>(stream).context, stream, pool, {}});
    }
    driver::check(ended.status, ended.call ? ended.call : "cuMemFreeAsync",
                  [&] { return describe(DeviceMemoryBox::kKind, raw); });
}

void free_at_once(CUcontext context, const StreamHandle& stream, CUdeviceptr raw, bool on_host) {
    Ended ended = CUDA_SUCCESS;
    {
        InterpreterUnlocked unlocked;
        ended = free_or_defer(
            {raw, on_host ? FreeManner::OnHost : FreeManner::AtOnce, context, stream, {}, {}});
    }
    const char* freeing = on_host ? "cuMemFreeHost" : "cuMemFree";
    driver::check(ended.status, ended.call ? ended.call : freeing,
                  [&] { return describe("memory", raw); });
}

} // namespace cudamod::handles
