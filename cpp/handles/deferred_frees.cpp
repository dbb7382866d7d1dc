#include "handles/deferred_frees.h"

#include "driver/log.h"
#include "driver/table.h"
#include "handles/device_memory.h"
#include "handles/memory_import.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace cudamod::handles {

namespace {

struct Deferred {
    std::mutex mutex;
    std::vector<DeferredFree> frees;
    std::atomic<bool> any{false};
};

Deferred& deferred() {
    static auto* instance = new Deferred;
    return *instance;
}

} // namespace

bool is_captured(const StreamHandle& stream) noexcept {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult status = driver::table.cuStreamIsCapturing(*stream, &capture);
    if (status != CUDA_SUCCESS) driver::take_log(status);
    return status == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
           (status == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE);
}

bool defer_free(DeferredFree free) noexcept {
    try {
        std::lock_guard lock(deferred().mutex);
        deferred().frees.push_back(std::move(free));
        deferred().any.store(true, std::memory_order_relaxed);
        return true;
    } catch (...) {
        return false;
    }
}

std::optional<DeferredFree> take_deferred_free(const MemoryImportKey& key) noexcept {
    std::lock_guard lock(deferred().mutex);
    auto& frees = deferred().frees;
    auto it = std::find_if(frees.begin(), frees.end(), [&](const DeferredFree& free) {
        return free.import && free.import->key() == key;
    });
    if (it == frees.end()) return std::nullopt;
    std::optional<DeferredFree> taken(std::move(*it));
    frees.erase(it);
    return taken;
}

void free_deferred() noexcept {
    if (!deferred().any.load(std::memory_order_relaxed)) return;
    std::vector<DeferredFree> frees;
    {
        std::lock_guard lock(deferred().mutex);
        frees.swap(deferred().frees);
        deferred().any.store(false, std::memory_order_relaxed);
    }
    for (DeferredFree& free : frees) {
        const DeferredFree now = std::move(free);
        free_memory(now);
    }
}

} // namespace cudamod::handles
