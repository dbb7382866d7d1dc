#pragma once

#include "python/launch_config.h"
#include "python/launch_path.h"
#include "python/stream.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cudamod::python {

/// A count that threads change under the interpreter lock, where there is one.
#ifdef Py_GIL_DISABLED
using UserCount = std::atomic<std::size_t>;
#else
using UserCount = std::size_t;
#endif

/// Converted arguments, and what keeps them alive. Never changed while a driver call reads them:
/// `users` counts those and the prepared launch itself, and a change then makes a copy.
struct PreparedArguments {
    struct Owner {
        nb::object value;
        handles::DeviceMemoryHandle memory; // of a Buffer, which may be closed meanwhile
        nb::object foreign;                 // the owner of a Buffer's foreign memory
    };
    UserCount users{1};
    std::vector<Owner> owners;
    std::vector<void*> pointers;
    std::unique_ptr<std::byte[]> cells;

    explicit PreparedArguments(const launch::Layout& layout);
    PreparedArguments(const PreparedArguments& other, const launch::Layout& layout);
};

void release(PreparedArguments* arguments) noexcept;

/// A launch with its arguments: the C++ part of Python's `Prepared`, built in place and never
/// moved.
struct PreparedLaunch {
    std::shared_ptr<const launch::Kernel> kernel;
    std::shared_ptr<const launch::Layout> layout;
    nb::object config_object, stream_object, metadata;
    handles::StreamHandle handle;
    mutable nb::ft_mutex mutex;   // stands for the interpreter lock where there is none
    PreparedArguments* arguments; // null once the garbage collector took it apart
    std::uint64_t version = 0;    // changes with every argument
    LaunchSource source;
    LaunchParts parts;
    CUlaunchConfig native; // the whole configuration, unless it has attributes

    PreparedLaunch(std::shared_ptr<const launch::Kernel> kernel_,
                   std::shared_ptr<const launch::Layout> layout_, nb::object config,
                   nb::object stream, nb::object metadata_, GilManner gil,
                   handles::StreamHandle handle_, PreparedArguments* arguments_);
    PreparedLaunch(const PreparedLaunch&) = delete;
    PreparedLaunch& operator=(const PreparedLaunch&) = delete;

    const handles::StreamBox& box() const { return parts.stream; }
};

/// The arguments of this moment, for whoever reads them without the interpreter lock.
class ArgumentsInUse {
  public:
    explicit ArgumentsInUse(const PreparedLaunch& launch) {
        nb::ft_lock_guard lock(launch.mutex);
        version_ = launch.version;
        arguments_ = launch.arguments;
        if (arguments_) ++arguments_->users;
    }
    ~ArgumentsInUse() {
        if (arguments_) release(arguments_);
    }
    ArgumentsInUse(ArgumentsInUse&& other) noexcept
        : arguments_(std::exchange(other.arguments_, nullptr)), version_(other.version_) {}
    ArgumentsInUse& operator=(ArgumentsInUse&&) = delete;

    /// Null when there is nothing left to use.
    const PreparedArguments* get() const { return arguments_; }
    std::uint64_t version() const { return version_; }

    /// What the driver takes.
    void** pointers() const {
        return arguments_->pointers.empty() ? nullptr : arguments_->pointers.data();
    }

  private:
    PreparedArguments* arguments_;
    std::uint64_t version_;
};

/// Launches with the arguments of the moment, by `parts`, which are the launch's own or differ from
/// them in the stream. New reference to None, or null with an error set.
PyObject* launch_prepared(const PreparedLaunch& launch, const LaunchParts& parts);

/// Converts the arguments; throws when one can't be passed.
nb::object make_prepared(std::shared_ptr<const launch::Kernel> kernel,
                         std::shared_ptr<const launch::Layout> layout, nb::object config,
                         nb::object stream, GilManner gil, nb::object metadata,
                         PyObject* const* arguments, std::size_t count);

/// The launch inside a `Prepared`, or null for any other object.
PreparedLaunch* prepared_launch(PyObject* object);

} // namespace cudamod::python
