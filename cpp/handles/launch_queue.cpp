#include "handles/launch_queue.h"

#include "driver/log.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace cudamod::handles {

namespace {

constexpr std::size_t kRememberedStreams = 4096;

/// Whether the stream captures, so that what is launched is not queued at all.
bool captures(const StreamBox& stream) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return stream.raw != CU_STREAM_LEGACY &&
           driver::table.cuStreamIsCapturing(stream.raw, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace

LaunchQueue::~LaunchQueue() {
    for (const Mark& mark : marks_)
        if (mark.event)
            destroy("cuEventDestroy", "event", value_of(mark.event), false,
                    [&] { return driver::table.cuEventDestroy(mark.event); });
}

/// Forgets the marks that have been reached: with the newest all of them, which is what a device
/// that keeps up has reached.
void LaunchQueue::settle() noexcept {
    if (count_ > 1 && !broken_) {
        const Mark& newest = marks_[(first_ + count_ - 1) % marks_.size()];
        CUresult status = driver::table.cuEventQuery(newest.event);
        if (status == CUDA_SUCCESS) unfinished_ = count_ = 0;
        broken_ = status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY;
    }
    while (count_ && !broken_) {
        const Mark& mark = marks_[first_];
        CUresult status = driver::table.cuEventQuery(mark.event);
        if (status == CUDA_ERROR_NOT_READY) break;
        broken_ = status != CUDA_SUCCESS;
        unfinished_ -= mark.launches;
        first_ = (first_ + 1) % marks_.size();
        --count_;
    }
}

/// Marks the stream after the unmarked launches. False when there is no mark left.
bool LaunchQueue::mark(const StreamBox& stream) noexcept {
    if (count_ == marks_.size() || broken_) return false;
    Mark& mark = marks_[(first_ + count_) % marks_.size()];
    try {
        ContextScope scope(stream.context);
        CUresult status = CUDA_SUCCESS;
        if (!mark.event) status = driver::table.cuEventCreate(&mark.event, CU_EVENT_DISABLE_TIMING);
        if (status == CUDA_SUCCESS) status = driver::table.cuEventRecord(mark.event, stream.raw);
        broken_ = status != CUDA_SUCCESS;
    } catch (...) {
        broken_ = true;
    }
    if (broken_) return false;
    mark.launches = std::exchange(unmarked_, 0);
    unfinished_ += mark.launches;
    ++count_;
    return true;
}

bool LaunchQueue::refill(const StreamBox& stream) noexcept {
    credit_.store(0, std::memory_order_relaxed);
    if (captures(stream)) return true;
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    {
        RelaxedCapture relaxed; // an event that is asked about spoils a capture in global mode
        unmarked_ += unasked_.exchange(0, std::memory_order_relaxed);
        if (unfinished_ + unmarked_ + kBatch > kMost || count_ == marks_.size()) settle();
        // With more than this unfinished, recording might wait.
        if (unmarked_ >= kBatch && unfinished_ + unmarked_ <= kMost) mark(stream);
    }
    bool room = !broken_ && unfinished_ + unmarked_ + kBatch <= kMost;
    if (room) {
        unmarked_ += kBatch;
        credit_.store(kBatch - 1, std::memory_order_relaxed);
    }
    if (broken_) driver::take_log(CUDA_SUCCESS);
    busy_.clear(std::memory_order_release);
    return room;
}

void LaunchQueue::mark_unasked(const StreamBox& stream) noexcept {
    if (captures(stream) || busy_.test_and_set(std::memory_order_acquire)) return;
    {
        RelaxedCapture relaxed;
        settle();
        // What was granted and not used yet may come after this mark.
        credit_.store(0, std::memory_order_relaxed);
        unmarked_ += unasked_.exchange(0, std::memory_order_relaxed);
        mark(stream);
    }
    busy_.clear(std::memory_order_release);
}

LaunchQueue* launch_queue_of(const StreamBox& stream) {
    if (LaunchQueue* known = stream.launch_queue.load(std::memory_order_acquire)) return known;
    if (stream.raw == CU_STREAM_PER_THREAD) return nullptr;
    auto fresh = std::make_unique<LaunchQueue>();
    if (stream.owned) {
        LaunchQueue* known = nullptr;
        if (stream.launch_queue.compare_exchange_strong(known, fresh.get(),
                                                        std::memory_order_acq_rel))
            known = fresh.release();
        return known;
    }
    // The process's; each of the stream's boxes finds the same one.
    static auto* queues = new std::map<std::pair<CUcontext, CUstream>, LaunchQueue*>;
    static auto* mutex = new std::mutex;
    std::lock_guard lock(*mutex);
    LaunchQueue*& entry = (*queues)[{stream.context, stream.raw}];
    if (!entry) {
        if (queues->size() > kRememberedStreams) {
            queues->erase({stream.context, stream.raw});
            return nullptr;
        }
        entry = fresh.release();
    }
    stream.launch_queue.store(entry, std::memory_order_release);
    return entry;
}

} // namespace cudamod::handles
