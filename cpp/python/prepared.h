#pragma once

#include "python/launch_config.h"
#include "python/launch_path.h"
#include "python/stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cudamod::python {

/// Converted arguments, and what keeps them alive. Never changed while a driver call reads them:
/// `users` counts those and the prepared launch itself, and a change then makes a copy. All of it
/// under the interpreter lock.
struct PreparedArguments {
    struct Owner {
        nb::object value;
        handles::DeviceMemoryHandle memory; // of a Buffer, which may be closed meanwhile
        nb::object foreign;                 // the owner of a Buffer's foreign memory
    };
    std::size_t users = 1;
    std::vector<Owner> owners;
    std::vector<void*> pointers;
    std::unique_ptr<std::byte[]> cells;

    explicit PreparedArguments(const launch::Layout& layout);
    PreparedArguments(const PreparedArguments& other, const launch::Layout& layout);
};

void release(PreparedArguments* arguments) noexcept;

/// A launch with its arguments: the C++ part of Python's `Prepared`.
struct PreparedLaunch {
    std::shared_ptr<const launch::Kernel> kernel;
    std::shared_ptr<const launch::Layout> layout;
    nb::object config_object, stream_object;
    const LaunchConfig* config; // inside config_object
    const Stream* stream;       // inside stream_object
    handles::StreamHandle handle;
    const handles::StreamBox* box; // that of `handle`
    GilManner gil;
    PreparedArguments* arguments; // null once the garbage collector took it apart
    std::uint64_t version = 0;    // changes with every argument
    CUlaunchConfig native;        // the whole configuration, unless it has attributes

    LaunchParts parts() const { return {*kernel, *layout, *config, *box, gil, stream->handle}; }
    void** pointers() const {
        return arguments->pointers.empty() ? nullptr : arguments->pointers.data();
    }
};

/// Converts the arguments; throws when one can't be passed.
nb::object make_prepared(std::shared_ptr<const launch::Kernel> kernel,
                         std::shared_ptr<const launch::Layout> layout, nb::object config,
                         nb::object stream, GilManner gil, PyObject* const* arguments,
                         std::size_t count);

/// The launch inside a `Prepared`, or null for any other object.
PreparedLaunch* prepared_launch(PyObject* object);

} // namespace cudamod::python
