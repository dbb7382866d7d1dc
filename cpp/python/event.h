#pragma once

#include "handles/event.h"
#include "python/instance.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace cudamod::python {

/// Python's `Event`. `handle` is empty once it is closed.
struct Event {
    handles::EventHandle handle;
    bool timing;
    bool blocking_sync;
    bool shared;      // with other processes
    std::size_t hash; // stays when it is closed

    Event(handles::EventHandle open, bool timing_, bool blocking_sync_, bool shared_)
        : handle(std::move(open)), timing(timing_), blocking_sync(blocking_sync_), shared(shared_),
          hash(std::hash<CUevent>()(*handle)) {}
    const handles::EventBox& box() const { return handles::box_of<handles::EventBox>(handle); }
};

/// The handle of an open event; throws RuntimeError for a closed one.
const handles::EventHandle& open_handle(const Event& event);

/// A new event with the options of an EventOptions, a dict or None.
nb::object new_event(CUcontext context, int device, nb::handle options);

} // namespace cudamod::python
