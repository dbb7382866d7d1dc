#pragma once

#include <atomic>
#include <mutex>

namespace cudamod::emulator {

/// Why a call may not simply run. Zero on the ordinary path, which pays one relaxed load for all of
/// them.
enum Attention : unsigned {
    kNotInitialized = 1, ///< before cuInit, and for ever in a forked child
    kShutDown = 2,       ///< the process is exiting
    kJournal = 4,
    kInjection = 8,
    kCallbacks = 16, ///< a host callback has run: threads inside of one may not call the driver
    kNullLaunch = 32,
    kRecorder = 64,
    kCaptures = 128,    ///< a capture is in progress, which may forbid a call
    kUserObjects = 256, ///< destructors of user objects are due
};

extern std::atomic<unsigned> attention;

inline void set_attention(Attention bit, bool on) {
    on ? attention.fetch_or(bit) : attention.fetch_and(~static_cast<unsigned>(bit));
}

/// Guards every table and object of the driver. Cold calls hold it throughout; launches, copies and
/// whatever else runs work of a stream hold it while they validate and never while the work runs.
std::mutex& driver_mutex();

/// How many host callbacks this thread is inside of.
extern thread_local int callback_depth;

/// While one lives, driver calls of this thread answer CUDA_ERROR_NOT_PERMITTED.
class CallbackScope {
  public:
    CallbackScope();
    ~CallbackScope();
    CallbackScope(const CallbackScope&) = delete;
    CallbackScope& operator=(const CallbackScope&) = delete;
};

/// cuInit's work: once per process.
void initialize_process();

} // namespace cudamod::emulator
