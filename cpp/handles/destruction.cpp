#include "handles/destruction.h"

#include "driver/library.h"
#include "driver/table.h"

#include <atomic>
#include <cstdio>

namespace cudamod::handles {

namespace {

std::atomic<bool> stopped{false};
InterpreterLock interpreter_lock;

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

std::string describe(const char* noun, unsigned long long raw) {
    char text[64];
    std::snprintf(text, sizeof text, "%s 0x%llx", noun, raw);
    return text;
}

} // namespace cudamod::handles
