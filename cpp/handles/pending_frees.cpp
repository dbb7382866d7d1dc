#include "handles/pending_frees.h"

#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"

#include <algorithm>
#include <utility>

namespace cudamod::handles {

namespace {

/// Makes a context current for a scope in which nothing may be thrown.
class Entered {
  public:
    explicit Entered(CUcontext context) noexcept
        : entered_(driver::table.cuCtxPushCurrent(context) == CUDA_SUCCESS) {}
    ~Entered() {
        if (entered_) pop_context();
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    explicit operator bool() const { return entered_; }

  private:
    bool entered_;
};

/// A context that is gone, or that faulted, frees nothing any more: nothing is left to wait for.
bool reached(const EventHandle& event) {
    CUresult status = driver::table.cuEventQuery(*event);
    if (status != CUDA_SUCCESS) driver::take_log(status);
    return status != CUDA_ERROR_NOT_READY;
}

} // namespace

PendingFrees::PendingFrees(PendingFrees&& other) noexcept {
    std::lock_guard lock(other.mutex_);
    marks_ = std::exchange(other.marks_, {});
}

void PendingFrees::note(const StreamHandle& stream) noexcept {
    const StreamBox& box = box_of<StreamBox>(stream);
    Mark mark{stream, box.context, {}};
    {
        // The event of an earlier free in the same stream moves on. Another stream may have got the
        // value of one that is gone, whose frees may not be done.
        std::lock_guard lock(mutex_);
        auto known = std::find_if(marks_.begin(), marks_.end(), [&](const Mark& m) {
            return m.event && !m.stream.owner_before(stream) && !stream.owner_before(m.stream);
        });
        if (known != marks_.end()) {
            mark = std::move(*known);
            marks_.erase(known);
        }
    }
    try {
        if (!mark.event)
            mark.event =
                create_event(box.context, box.device, CU_EVENT_DISABLE_TIMING, Lifetime::Internal);
        driver::check(driver::table.cuEventRecord(*mark.event, *stream), "cuEventRecord");
    } catch (...) {
        mark.event.reset();
    }
    try {
        std::lock_guard lock(mutex_);
        marks_.push_back(std::move(mark));
    } catch (...) {
        // No room to remember it: the free is waited for here.
        driver::table.cuCtxSynchronize();
    }
}

bool PendingFrees::done() noexcept {
    std::erase_if(marks_, [](const Mark& mark) { return mark.event && reached(mark.event); });
    return marks_.empty();
}

void PendingFrees::wait() noexcept {
    for (const Mark& mark : marks_) {
        Entered context(mark.context);
        if (mark.event)
            driver::table.cuEventSynchronize(*mark.event);
        else if (context)
            driver::table.cuCtxSynchronize();
    }
    marks_.clear();
}

} // namespace cudamod::handles
