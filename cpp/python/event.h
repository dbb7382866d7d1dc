#pragma once

#include "handles/event.h"
#include "python/instance.h"

namespace cudamod::python {

/// Python's `Event`. `handle` is empty once it is closed.
struct Event {
    handles::EventHandle handle;
    bool timing;
    bool blocking_sync;

    const handles::EventBox& box() const { return handles::box_of<handles::EventBox>(handle); }
};

/// The handle of an open event; throws RuntimeError for a closed one.
const handles::EventHandle& open_handle(const Event& event);

/// A new event with the options of an EventOptions, a dict or None.
nb::object new_event(CUcontext context, int device, nb::handle options);


} // namespace cudamod::python
