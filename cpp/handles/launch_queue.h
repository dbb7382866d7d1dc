#pragma once

#include "handles/stream.h"

#include <cuda.h>

#include <array>
#include <atomic>

namespace cudamod::handles {

/// How many of our launches a stream has not finished yet, as far as a launch needs to know that
/// its driver call can't wait for room in the stream's queue. Every 64 launches an event marks the
/// stream; while fewer than 256 launches are unfinished, launches come in batches of 64 that need
/// not ask. Safe for any thread.
class LaunchQueue {
  public:
    LaunchQueue() = default;
    ~LaunchQueue();
    LaunchQueue(const LaunchQueue&) = delete;
    LaunchQueue& operator=(const LaunchQueue&) = delete;

    /// Whether there is room for one launch more, which the caller then makes.
    bool has_room(const StreamBox& stream) noexcept {
        return credit_.fetch_sub(1, std::memory_order_relaxed) > 0 || refill(stream);
    }

    /// A launch was made without asking, or against the answer. May wait for room in the queue: for
    /// callers that hold no lock.
    void note_launch(const StreamBox& stream) noexcept {
        if (unasked_.fetch_add(1, std::memory_order_relaxed) + 1 >= kBatch) mark_unasked(stream);
    }

    static constexpr unsigned kBatch = 64, kMost = 256;

  private:
    struct Mark {
        CUevent event;
        unsigned launches; // since the mark before
    };

    bool refill(const StreamBox& stream) noexcept;
    void mark_unasked(const StreamBox& stream) noexcept;
    void settle() noexcept;
    bool mark(const StreamBox& stream) noexcept;

    std::atomic<int> credit_{0};
    std::atomic<unsigned> unasked_{0};
    // What follows belongs to whoever has set `busy_`; nobody waits for it.
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    std::array<Mark, kMost / kBatch> marks_{}; // a ring
    unsigned first_ = 0, count_ = 0;
    unsigned unmarked_ = 0, unfinished_ = 0; // launches after the last mark; up to it
    bool broken_ = false; // the driver answered an error: nothing can be proved any more
};

/// The stream's queue, made when it is first asked for: part of an own stream's box; for somebody
/// else's and for the legacy stream one for the life of the process. Null where nothing can be
/// counted: a per-thread default stream is another stream in each thread, and more streams of
/// others than are remembered.
LaunchQueue* launch_queue_of(const StreamBox& stream);

} // namespace cudamod::handles
