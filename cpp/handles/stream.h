#pragma once

#include "handles/handle.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <type_traits>

namespace cudamod::handles {

class LaunchQueue;

/// What a stream is and where it runs. Default streams belong to the device that they were taken
/// from.
struct StreamBox {
    using Raw = CUstream;
    static constexpr const char* kKind = "stream";
    Raw raw;
    CUcontext context;
    int device;
    bool owned;
    bool is_default;
    mutable std::atomic<LaunchQueue*> launch_queue{nullptr}; // see launch_queue_of
    Tracked tracked;

    StreamBox(Raw raw_, CUcontext context_, int device_, bool owned_, bool is_default_)
        : raw(raw_), context(context_), device(device_), owned(owned_), is_default(is_default_) {}
    ~StreamBox();
    Lifetime lifetime() const {
        return owned ? Lifetime::Owned : is_default ? Lifetime::Process : Lifetime::Borrowed;
    }
    std::vector<Dependency> dependencies() const { return {{"context", value_of(context)}}; }
    StreamBox(const StreamBox&) = delete;
    StreamBox& operator=(const StreamBox&) = delete;
};
using StreamHandle = Handle<StreamBox>;

/// A new stream in the device's primary context. `priority`: lower runs first; none is the lowest.
StreamHandle create_stream(int device, bool nonblocking, std::optional<int> priority);

/// The legacy (`per_thread` false) or per-thread default stream of a device. No driver call beyond
/// the first for the device.
StreamHandle default_stream(int device, bool per_thread);

/// Wraps somebody else's stream without owning it, or finds our own again. 0, 1 and 2 are the
/// default streams of the current context's device.
StreamHandle stream_from_raw(CUstream raw);

} // namespace cudamod::handles
