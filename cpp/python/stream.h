#pragma once

#include "handles/stream.h"
#include "python/instance.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace cudamod::python {

/// Python's `Stream`. `handle` is empty once it is closed.
struct Stream {
    handles::StreamHandle handle;
    std::size_t hash; // stays when it is closed

    explicit Stream(handles::StreamHandle open)
        : handle(std::move(open)), hash(std::hash<CUstream>()(*handle)) {}

    const handles::StreamBox& box() const { return handles::box_of<handles::StreamBox>(handle); }

    static PyTypeObject* python_type;
};

/// The handle of an open stream; throws RuntimeError for a closed one.
const handles::StreamHandle& open_handle(const Stream& stream);

/// The `Stream` for a stream argument: a Stream itself, or a foreign object with `__cuda_stream__`.
/// Anything else is a TypeError, None above all. A Stream that has been closed passes;
/// open_handle() refuses it.
nb::object stream_argument(nb::handle object);

/// A new stream with the options of a StreamOptions, a dict or None.
nb::object new_stream(int device, nb::handle options);

} // namespace cudamod::python
