#pragma once

#include "handles/library.h"
#include "launch/image_entries.h"
#include "python/instance.h"

#include <memory>

namespace cudamod::python {

/// `_core.Library`: a loaded image, and what its PTX says of the kernels' parameters.
struct Library {
    handles::LibraryHandle handle;
    std::unique_ptr<const launch::ImageEntries> entries;
};

/// The loaded library of an object that has one as `_library()` (an ObjectCode). Throws TypeError
/// otherwise.
handles::LibraryHandle library_of(nb::handle object_code);

/// A Python object for `launch::Kernel::origin`: let go with the interpreter lock held, from
/// whichever thread. Null for None.
std::shared_ptr<const void> as_origin(nb::object object);

/// The Python object of an origin, or None.
nb::object object_of(const std::shared_ptr<const void>& origin);

} // namespace cudamod::python
