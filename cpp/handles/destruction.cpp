#include "handles/destruction.h"

#include "driver/host_callbacks.h"
#include "driver/library.h"
#include "driver/table.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

namespace cudamod::handles {

namespace {

std::atomic<bool> stopped{false};
InterpreterLock interpreter_lock;

struct PostponedBoxes {
    struct Entry {
        void* box;
        void (*end)(void*);
    };
    std::mutex mutex;
    std::vector<Entry> entries;
};

PostponedBoxes& postponed_boxes() {
    static auto* instance = new PostponedBoxes; // boxes die after static destruction, too
    return *instance;
}

} // namespace

bool driver_is_ours() noexcept {
    return !stopped.load(std::memory_order_relaxed) && driver::opened_here();
}

void stop_destroying() noexcept {
    stopped.store(true, std::memory_order_relaxed);
}

void set_interpreter_lock(InterpreterLock lock) noexcept {
    interpreter_lock = lock;
}

RelaxedCapture::RelaxedCapture() noexcept {
    exchanged_ = driver::table.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
}

RelaxedCapture::~RelaxedCapture() {
    if (exchanged_) driver::table.cuThreadExchangeStreamCaptureMode(&mode_);
}

InterpreterUnlocked::InterpreterUnlocked() noexcept {
    if (interpreter_lock.release) state_ = interpreter_lock.release();
}

InterpreterUnlocked::~InterpreterUnlocked() {
    if (state_) interpreter_lock.acquire(state_);
}

void end_box(void* box, void (*end)(void*)) noexcept {
    if (!driver::in_host_callback()) return end(box);
    try {
        std::lock_guard lock(postponed_boxes().mutex);
        postponed_boxes().entries.push_back({box, end});
        attention.fetch_or(kReportsPending, std::memory_order_relaxed);
    } catch (...) {
        // Out of memory: the object is left to the end of the process.
    }
}

bool end_postponed_boxes() noexcept {
    if (driver::in_host_callback()) return false;
    std::vector<PostponedBoxes::Entry> taken;
    {
        std::lock_guard lock(postponed_boxes().mutex);
        taken.swap(postponed_boxes().entries);
    }
    for (const PostponedBoxes::Entry& entry : taken)
        entry.end(entry.box);
    return true;
}

std::string describe(const char* noun, unsigned long long raw) {
    char text[64];
    std::snprintf(text, sizeof text, "%s 0x%llx", noun, raw);
    return text;
}

} // namespace cudamod::handles
