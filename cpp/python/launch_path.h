#pragma once

#include "driver/host_callbacks.h"
#include "handles/launch_queue.h"
#include "launch/call.h"
#include "python/gil_released.h"
#include "python/packing.h"
#include "python/public_call.h"

#include <Python.h>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace cudamod::python {

/// Whether a launch lets the interpreter lock go around the driver call; Auto keeps it while the
/// call can't wait for anything but the driver itself.
enum class GilManner : unsigned char { Release, Hold, Auto };

/// Who launches, for those who watch launches.
struct LaunchSource {
    const std::shared_ptr<const launch::Kernel>& kernel;
    PyObject* config;   // a LaunchConfig, or null: one is made of the launch's own
    PyObject* stream;   // a Stream, or null likewise
    PyObject* metadata; // whatever bind was given, or null
};

/// Everything that a launch needs; each part is kept alive by the caller for the length of the
/// call.
struct LaunchParts {
    const launch::Kernel& kernel;
    const launch::Layout& layout;
    const launch::Config& config;
    const handles::StreamBox& stream;
    const handles::StreamHandle& open; // the Python stream's own: empty once it is closed
    const LaunchSource& source;
    handles::LaunchQueue* queue; // the stream's, for GilManner::Auto; null: release
    GilManner gil;
    const DescribedTensor* described = nullptr; // the one that told the stream
    CUkernel function = kernel.raw(); // here, since a cold launch waits for each line of memory
};

/// The queue that a launch in that manner on that stream has to ask.
inline handles::LaunchQueue* queue_for(GilManner gil, const handles::StreamBox& stream) {
    return gil == GilManner::Auto ? handles::launch_queue_of(stream) : nullptr;
}

/// A launch with another number of arguments than the kernel has parameters.
PyObject* wrong_count(const launch::Kernel& kernel, std::size_t wanted, std::size_t given);

/// Turns a failed launch into its error, which names the kernel and says which limit was exceeded.
PyObject* launch_failed(CUresult status, const LaunchParts& parts);

/// Makes the graph under capture keep the kernel's library; null with an error set, else None
/// (borrowed).
PyObject* keep_in_capture(const LaunchParts& parts);

/// Whether nothing that the launch uses was closed while arguments were converted; false with an
/// error set.
bool still_open(const LaunchParts& parts, PyObject* const* arguments, std::size_t count);

/// What a launch of that shape needs of the kernel, the driver and the stream: dynamic shared
/// memory is opted in, the driver must know the attributes, a cooperative grid must be able to run
/// at once. Throws std::invalid_argument, DriverError.
void make_ready(const launch::Kernel& kernel, const launch::Shape& shape,
                const handles::StreamBox& stream);

/// The driver call of a launch, with the interpreter lock as the launch's manner has it.
struct CallDriver {
    /// Whether the driver call is provably short: it loads nothing, its queue has room, and no
    /// host function of ours has to run first.
    static bool may_hold(const LaunchParts& parts) {
        return parts.queue && parts.kernel.is_resident(parts.stream) &&
               driver::pending_host_callbacks.load(std::memory_order_acquire) == 0 &&
               parts.queue->has_room(parts.stream);
    }

    CUresult operator()(const LaunchParts& parts, void** pointers) const {
        return in_manner(parts, [&] {
            return launch::call(parts.config, parts.stream, parts.function, pointers);
        });
    }

    template <class Driver>
    static CUresult in_manner(const LaunchParts& parts, Driver&& call_driver) {
        if (parts.gil == GilManner::Hold || (parts.gil == GilManner::Auto && may_hold(parts)))
            return call_driver();
        PyThreadState* state = PyEval_SaveThread();
        CUresult status = call_driver();
        if (parts.queue) {
            if (status == CUDA_SUCCESS && !launch::is_capturing(parts.stream.raw))
                parts.kernel.note_resident(parts.stream.device, parts.stream.context);
            parts.queue->note_launch(parts.stream);
        }
        take_gil(state);
        return status;
    }
};

/// Launches with packed arguments. New reference to None, or null with an error set.
template <class Call = CallDriver>
inline PyObject* launch_packed(const LaunchParts& parts, void** pointers, Call&& call_driver = {}) {
    if (launch::is_capturing(parts.stream.raw)) [[unlikely]]
        if (!keep_in_capture(parts)) return nullptr;
    CUresult status = call_driver(parts, pointers);
    if (status != CUDA_SUCCESS) [[unlikely]]
        return launch_failed(status, parts);
    Py_RETURN_NONE;
}

/// Packs the arguments and launches. New reference to None, or null with an error set.
template <class Call = CallDriver>
inline PyObject* launch_unobserved(const LaunchParts& parts, PyObject* const* arguments,
                                   std::size_t count, Call&& call_driver = {}) {
    const launch::Layout& layout = parts.layout;
    if (count != layout.parameters.size()) [[unlikely]]
        return wrong_count(parts.kernel, layout.parameters.size(), count);
    ArgumentRoom room;
    if (!room.reserve(layout, count)) [[unlikely]]
        return nullptr;
    ArgumentSite site{parts.kernel, 0, parts.stream.device, parts.described};
    if (!pack(layout, arguments, count, room.cells, room.pointers, site)) [[unlikely]]
        return nullptr;
    if (site.something_closed() && !still_open(parts, arguments, count)) [[unlikely]]
        return nullptr;
    return launch_packed(parts, count ? room.pointers : nullptr, call_driver);
}

/// The same with what comes before or around it: reports to deliver, and those who watch launches.
PyObject* launch_attentively(const LaunchParts& parts, PyObject* const* arguments,
                             std::size_t count);

/// The same for packed arguments; `arguments` are what they were made of.
PyObject* launch_packed_attentively(const LaunchParts& parts, PyObject* const* arguments,
                                    std::size_t count, void** pointers);

/// The launch of every public call.
inline PyObject* launch_with(const LaunchParts& parts, PyObject* const* arguments,
                             std::size_t count) {
    if (handles::attention.load(std::memory_order_relaxed)) [[unlikely]]
        return launch_attentively(parts, arguments, count);
    return launch_unobserved(parts, arguments, count);
}

} // namespace cudamod::python
