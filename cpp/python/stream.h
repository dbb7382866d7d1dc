#pragma once

#include "handles/stream.h"
#include "python/instance.h"

namespace cudamod::python {

/// Python's `Stream`. `handle` is empty once it is closed.
struct Stream {
    handles::StreamHandle handle;

    const handles::StreamBox& box() const { return handles::box_of<handles::StreamBox>(handle); }

    static PyTypeObject* python_type;
};

/// The handle of an open stream; throws RuntimeError for a closed one.
const handles::StreamHandle& open_handle(const Stream& stream);

/// The `Stream` for a stream argument: a Stream itself, or a foreign object with `__cuda_stream__`. Anything
/// else is a TypeError, None above all.
nb::object stream_argument(nb::handle object);

/// A new stream with the options of a StreamOptions, a dict or None.
nb::object new_stream(int device, nb::handle options);


} // namespace cudamod::python
