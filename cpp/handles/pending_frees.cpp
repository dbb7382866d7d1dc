#include "handles/pending_frees.h"

#include "driver/log.h"
#include "driver/table.h"
#include "handles/destruction.h"

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
        CUcontext popped;
        if (entered_) driver::table.cuCtxPopCurrent(&popped);
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    explicit operator bool() const { return entered_; }

  private:
    bool entered_;
};

/// A context that is gone, or that faulted, frees nothing any more: nothing is left to wait for.
bool reached(CUevent event) {
    CUresult status = driver::table.cuEventQuery(event);
    if (status != CUDA_SUCCESS) driver::take_log(status);
    return status != CUDA_ERROR_NOT_READY;
}

} // namespace

PendingFrees::PendingFrees(PendingFrees&& other) noexcept {
    std::lock_guard lock(other.mutex_);
    marks_ = std::exchange(other.marks_, {});
}

PendingFrees::~PendingFrees() {
    if (!driver_is_ours()) return;
    for (const Mark& mark : marks_)
        if (mark.event) driver::table.cuEventDestroy(mark.event);
}

void PendingFrees::note(const StreamHandle& stream, CUstream order) noexcept {
    Mark mark{stream, order, box_of<StreamBox>(stream).context, nullptr};
    {
        // The event of an earlier free in the same stream moves on. Another stream may have got the
        // value of one that is gone, whose frees may not be done.
        std::lock_guard lock(mutex_);
        auto known = std::find_if(marks_.begin(), marks_.end(), [&](const Mark& m) {
            return m.event && m.order == order && !m.stream.owner_before(stream) &&
                   !stream.owner_before(m.stream);
        });
        if (known != marks_.end()) {
            mark = std::move(*known);
            marks_.erase(known);
        }
    }
    CUresult status = CUDA_SUCCESS;
    if (!mark.event) status = driver::table.cuEventCreate(&mark.event, CU_EVENT_DISABLE_TIMING);
    if (status == CUDA_SUCCESS) status = driver::table.cuEventRecord(mark.event, order);
    if (status != CUDA_SUCCESS && mark.event)
        driver::table.cuEventDestroy(std::exchange(mark.event, nullptr));
    try {
        std::lock_guard lock(mutex_);
        marks_.push_back(std::move(mark));
    } catch (...) {
        // No room to remember it: the free is waited for here.
        driver::table.cuCtxSynchronize();
    }
}

bool PendingFrees::done() noexcept {
    std::erase_if(marks_, [](const Mark& mark) {
        if (!mark.event || !reached(mark.event)) return false;
        driver::table.cuEventDestroy(mark.event);
        return true;
    });
    return marks_.empty();
}

void PendingFrees::wait() noexcept {
    for (const Mark& mark : marks_) {
        Entered context(mark.context);
        if (mark.event) {
            driver::table.cuEventSynchronize(mark.event);
            driver::table.cuEventDestroy(mark.event);
        } else if (context) {
            driver::table.cuCtxSynchronize();
        }
    }
    marks_.clear();
}

} // namespace cudamod::handles
