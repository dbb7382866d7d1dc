#pragma once

#include "handles/handle.h"

#include <cuda.h>

namespace cudamod::handles {

struct EventBox {
    using Raw = CUevent;
    Raw raw;
    CUcontext context;
    int device;

    EventBox(Raw raw_, CUcontext context_, int device_)
        : raw(raw_), context(context_), device(device_) {}
    ~EventBox();
    EventBox(const EventBox&) = delete;
    EventBox& operator=(const EventBox&) = delete;
};
using EventHandle = Handle<EventBox>;

/// A new event in a context, with CU_EVENT_* flags.
EventHandle create_event(CUcontext context, int device, unsigned flags);

} // namespace cudamod::handles
