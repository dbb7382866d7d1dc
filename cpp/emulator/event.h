#pragma once

#include "emulator/api.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace cudamod::emulator {

struct Context;
struct EventCapture;
struct Stream;

/// One recording of an event: reached when the stream came to it.
class Mark {
  public:
    void reach();
    void wait();
    bool reached();
    std::chrono::steady_clock::time_point time();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool reached_ = false;
    std::chrono::steady_clock::time_point time_;
};

struct Event {
    CUevent handle = nullptr;
    std::shared_ptr<Context> context;
    unsigned flags = 0;
    std::shared_ptr<Mark> mark;             ///< of the latest recording; null before the first
    std::shared_ptr<EventCapture> captured; ///< when the latest recording was in a capture

    bool timing() const { return !(flags & CU_EVENT_DISABLE_TIMING); }
};

/// The stream reaches the mark after all that it does now; at once where nothing runs any more.
void reach_in(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Mark>& mark);

/// The event behind a handle; fails with CUDA_ERROR_INVALID_HANDLE, or what its context answers.
std::shared_ptr<Event> find_event(CUevent handle);

} // namespace cudamod::emulator
