#include "handles/deferred_frees.h"

#include "driver/log.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/device_memory.h"
#include "handles/memory_import.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace cudamod::handles {

namespace {

/// A free without its stream, so that a stream that nobody else has ends, and its capture with it.
struct Waiting {
    DeferredFree free;
    std::weak_ptr<const CUstream> stream;
};

struct Deferred {
    std::mutex mutex;
    std::vector<Waiting> frees;
    std::atomic<bool> any{false};
};

Deferred& deferred() {
    static auto* instance = new Deferred;
    return *instance;
}

void keep(Waiting waiting) {
    std::lock_guard lock(deferred().mutex);
    deferred().frees.push_back(std::move(waiting));
    deferred().any.store(true, std::memory_order_relaxed);
}

/// Whether all work of a context is done, which is waited for. Not while another stream captures.
bool is_idle(CUcontext context) noexcept {
    RelaxedCapture relaxed;
    InterpreterUnlocked unlocked;
    if (driver::table.cuCtxPushCurrent(context) != CUDA_SUCCESS) return true; // it is gone
    const CUresult status = driver::table.cuCtxSynchronize();
    if (status != CUDA_SUCCESS) driver::take_log(status);
    pop_context();
    return status != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
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
        std::weak_ptr<const CUstream> stream = std::exchange(free.stream, {});
        keep({std::move(free), std::move(stream)});
        return true;
    } catch (...) {
        return false;
    }
}

std::optional<DeferredFree> take_deferred_free(const MemoryImportKey& key) noexcept {
    std::lock_guard lock(deferred().mutex);
    auto& frees = deferred().frees;
    auto it = std::find_if(frees.begin(), frees.end(), [&](const Waiting& waiting) {
        return waiting.free.import && waiting.free.import->key() == key;
    });
    if (it == frees.end()) return std::nullopt;
    std::optional<DeferredFree> taken(std::move(it->free));
    taken->stream = it->stream.lock();
    frees.erase(it);
    return taken;
}

void free_deferred() noexcept {
    if (!deferred().any.load(std::memory_order_relaxed)) return;
    std::vector<Waiting> frees;
    {
        std::lock_guard lock(deferred().mutex);
        frees.swap(deferred().frees);
        deferred().any.store(false, std::memory_order_relaxed);
    }
    for (Waiting& waiting : frees) {
        waiting.free.stream = waiting.stream.lock();
        if (!waiting.free.stream) {
            if (!is_idle(waiting.free.context)) {
                keep(std::move(waiting));
                continue;
            }
            if (waiting.free.manner == FreeManner::InOrder)
                waiting.free.manner = FreeManner::AtOnce;
        }
        const DeferredFree now = std::move(waiting.free);
        free_memory(now);
    }
}

} // namespace cudamod::handles
