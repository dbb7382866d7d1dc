#pragma once

#include "handles/handle.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <array>
#include <cstddef>

namespace cudamod::handles {

struct EventBox {
    using Raw = CUevent;
    static constexpr const char* kKind = "event";
    Raw raw;
    CUcontext context;
    int device;
    Lifetime purpose;
    Tracked tracked;

    EventBox(Raw raw_, CUcontext context_, int device_, Lifetime purpose_)
        : raw(raw_), context(context_), device(device_), purpose(purpose_) {}
    ~EventBox();
    Lifetime lifetime() const { return purpose; }
    std::vector<Dependency> dependencies() const { return {{"context", value_of(context)}}; }
    EventBox(const EventBox&) = delete;
    EventBox& operator=(const EventBox&) = delete;
};
using EventHandle = Handle<EventBox>;

/// A new event in a context, with CU_EVENT_* flags. `purpose`: Owned, or Internal for one of ours.
EventHandle create_event(CUcontext context, int device, unsigned flags,
                         Lifetime purpose = Lifetime::Owned);

/// What another process opens an event by.
using EventExport = std::array<std::byte, sizeof(CUipcEventHandle)>;

/// For an event that was made with CU_EVENT_INTERPROCESS by this process.
EventExport export_event(const EventHandle& event);

/// The event of another process, in a context of this one.
EventHandle import_event(CUcontext context, int device, const EventExport& exported);

} // namespace cudamod::handles
