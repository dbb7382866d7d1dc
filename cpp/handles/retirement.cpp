#include "handles/retirement.h"

#include "driver/table.h"
#include "handles/destruction.h"
#include "handles/library.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace cudamod::handles {

namespace {

struct RetiredLibrary {
    CUlibrary raw;
    std::size_t image_bytes;
    std::shared_ptr<const void> used;
};

struct Queue {
    std::mutex mutex;
    std::vector<RetiredLibrary> libraries;
    std::size_t image_bytes = 0;
    RetirementLimits limits;
};

Queue& queue() {
    static auto* instance = new Queue;
    return *instance;
}

std::atomic<UnloadManner> unload_manner{UnloadManner::Deferred};

/// Memory that the driver may use for as long as the process lives.
void leave(std::shared_ptr<const void> used) noexcept {
    if (used) new (std::nothrow) std::shared_ptr<const void>(std::move(used));
}

void unload(CUlibrary library) noexcept {
    destroy("cuLibraryUnload", LibraryBox::kKind, value_of(library), true,
            [&] { return driver::table.cuLibraryUnload(library); });
}

} // namespace

void retire(CUlibrary library, std::size_t image_bytes, std::shared_ptr<const void> used) noexcept {
    if (!driver_is_ours()) return leave(std::move(used));
    switch (unload_manner.load(std::memory_order_relaxed)) {
    case UnloadManner::Never:
        return leave(std::move(used));
    case UnloadManner::Now:
        unload(library);
        return;
    case UnloadManner::Deferred:
        break;
    }
    try {
        Queue& q = queue();
        std::lock_guard lock(q.mutex);
        q.libraries.push_back({library, image_bytes, used});
        q.image_bytes += image_bytes;
    } catch (...) {
        leave(std::move(used));
        report(CUDA_ERROR_OUT_OF_MEMORY, "cuLibraryUnload", {});
    }
}

void discard(CUlibrary library, std::shared_ptr<const void> used) noexcept {
    if (unload_manner.load(std::memory_order_relaxed) == UnloadManner::Never || !driver_is_ours())
        return leave(std::move(used));
    unload(library);
}

std::size_t reclaim() noexcept {
    if (!driver_is_ours()) return 0;
    Queue& q = queue();
    std::vector<RetiredLibrary> taken;
    {
        std::lock_guard lock(q.mutex);
        taken.swap(q.libraries);
        q.image_bytes = 0;
    }
    for (const RetiredLibrary& library : taken)
        unload(library.raw);
    return taken.size();
}

void reclaim_beyond_limits() noexcept {
    Queue& q = queue();
    {
        std::lock_guard lock(q.mutex);
        bool many = q.limits.libraries && q.libraries.size() > q.limits.libraries;
        bool large = q.limits.image_bytes && q.image_bytes > q.limits.image_bytes;
        if (!many && !large) return;
    }
    reclaim();
}

RetirementLimits retirement_limits() noexcept {
    std::lock_guard lock(queue().mutex);
    return queue().limits;
}

void set_retirement_limits(RetirementLimits limits) noexcept {
    std::lock_guard lock(queue().mutex);
    queue().limits = limits;
}

Retired retired() noexcept {
    std::lock_guard lock(queue().mutex);
    return {queue().libraries.size(), queue().image_bytes};
}

void set_unload_manner(UnloadManner manner) noexcept {
    unload_manner.store(manner, std::memory_order_relaxed);
}

} // namespace cudamod::handles
