#pragma once

#include "formats/ptx_header.h"
#include "handles/library.h"
#include "python/instance.h"

#include <optional>

namespace cudamod::python {

/// `_core.Library`: a loaded image, and what its PTX says of the kernels' parameters.
struct Library {
    handles::LibraryHandle handle;
    std::optional<formats::PtxHeader> ptx;
};

/// The loaded library of an object that has one as `_library()` (an ObjectCode). Throws TypeError
/// otherwise.
handles::LibraryHandle library_of(nb::handle object_code);

} // namespace cudamod::python
