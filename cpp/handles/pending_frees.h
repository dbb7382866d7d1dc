#pragma once

#include "handles/event.h"
#include "handles/stream.h"

#include <cuda.h>

#include <memory>
#include <mutex>
#include <vector>

namespace cudamod::handles {

/// The points in streams up to which a pool's memory has been freed. A driver (580.159) on which a
/// pool is destroyed before those points are reached divides by zero or faults in a later call.
class PendingFrees {
  public:
    PendingFrees() = default;
    PendingFrees(PendingFrees&& other) noexcept;
    PendingFrees& operator=(PendingFrees&&) = delete;

    /// Notes a free that was just put into the stream, whose context is current.
    void note(const StreamHandle& stream) noexcept;

    /// Whether every free is done; never waits. Like wait(), for the one owner that is left when
    /// nobody can free any more.
    bool done() noexcept;

    /// Waits until every free is done.
    void wait() noexcept;

  private:
    struct Mark {
        std::weak_ptr<const CUstream> stream;
        CUcontext context;
        EventHandle event; // empty: not recorded, so that only waiting for the context helps
    };

    std::mutex mutex_;
    std::vector<Mark> marks_;
};

} // namespace cudamod::handles
