#pragma once

#include "emulator/api.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace cudamod::emulator {

struct Clock;
struct Context;
struct EventCapture;
class SharedEvent;
struct Stream;

/// One recording of an event: reached when the stream came to it.
class Mark {
  public:
    bool reached() const { return reached_.load(std::memory_order_acquire); }

    /// When it was reached.
    std::chrono::steady_clock::time_point time() const { return time_; }

    /// Other processes see it reached as this recording of an event that they share.
    void share(const std::shared_ptr<SharedEvent>& event, std::uint64_t recording);
    std::uint64_t recording() const { return recording_; }

    std::shared_ptr<const Clock> clock; ///< what is known then, while streams are checked

  private:
    friend class Scheduler;
    void set_origin(const std::shared_ptr<Stream>& stream, std::uint64_t number);
    void set();

    std::weak_ptr<Stream> stream_; ///< where it is reached, as the work of this number
    std::uint64_t number_ = 0;

    std::shared_ptr<SharedEvent> shared_; ///< null: no other process's
    std::uint64_t recording_ = 0;

    std::atomic<bool> reached_{false};
    std::chrono::steady_clock::time_point time_;
};

struct Event {
    CUevent handle = nullptr;
    std::shared_ptr<Context> context;
    unsigned flags = 0;
    std::shared_ptr<Mark> mark;             ///< of the latest recording; null before the first
    std::shared_ptr<EventCapture> captured; ///< when the latest recording was in a capture
    std::shared_ptr<SharedEvent> shared;    ///< with CU_EVENT_INTERPROCESS
    bool imported = false;

    bool timing() const { return !(flags & CU_EVENT_DISABLE_TIMING); }
};

/// The stream reaches the mark after all that it does now, even after a fault. The caller may hold
/// the driver's lock, and then calls the stream's make_room() without it.
void reach_in(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Mark>& mark);

/// The event behind a handle; fails with CUDA_ERROR_INVALID_HANDLE, or what its context answers.
std::shared_ptr<Event> find_event(CUevent handle);

} // namespace cudamod::emulator
