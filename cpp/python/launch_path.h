#pragma once

#include "launch/call.h"
#include "python/argument.h"
#include "python/gil_released.h"
#include "python/public_call.h"

#include <Python.h>

#include <cstddef>
#include <memory>

namespace cudamod::python {

/// Whether a launch lets the interpreter lock go around the driver call.
enum class GilManner : unsigned char { Release, Hold };

/// Everything that a launch needs; each part is kept alive by the caller for the length of the
/// call.
struct LaunchParts {
    const launch::Kernel& kernel;
    const launch::Layout& layout;
    const launch::Config& config;
    const handles::StreamBox& stream;
    GilManner gil;
    const handles::StreamHandle& open; // the Python stream's own: empty once it is closed
};

/// A launch with another number of arguments than the kernel has parameters.
PyObject* wrong_count(const launch::Kernel& kernel, std::size_t wanted, std::size_t given);

/// Turns a failed launch into its error, which names the kernel and says which limit was exceeded.
PyObject* launch_failed(CUresult status, const LaunchParts& parts);

/// Makes the graph under capture keep the kernel's library; null with an error set, else None
/// (borrowed).
PyObject* keep_in_capture(const LaunchParts& parts);

/// Whether nothing was closed while arguments were converted; false with an error set.
bool still_open(const LaunchParts& parts, PyObject* const* arguments, std::size_t count);

struct CallDriver {
    CUresult operator()(const LaunchParts& parts, void** pointers) const {
        if (parts.gil == GilManner::Hold)
            return launch::call(parts.config, parts.stream, parts.kernel.raw(), pointers);
        PyThreadState* state = PyEval_SaveThread();
        CUresult status = launch::call(parts.config, parts.stream, parts.kernel.raw(), pointers);
        take_gil(state);
        return status;
    }
};

// The stack's share of one call; a rare kernel with more takes the heap.
constexpr std::size_t kStackBytes = 4096, kStackArguments = 256;

/// Packs the arguments and launches. New reference to None, or null with an error set.
template <class Call = CallDriver>
inline PyObject* launch_with(const LaunchParts& parts, PyObject* const* arguments,
                             std::size_t count, Call&& call_driver = {}) {
    const launch::Layout& layout = parts.layout;
    if (count != layout.parameters.size()) [[unlikely]]
        return wrong_count(parts.kernel, layout.parameters.size(), count);
    if (!reports_delivered()) [[unlikely]]
        return nullptr;
    // Never in the launcher: a conversion may run Python that launches it again.
    alignas(16) std::byte stack_cells[kStackBytes];
    void* stack_pointers[kStackArguments];
    std::byte* cells = stack_cells;
    void** pointers = stack_pointers;
    std::unique_ptr<std::byte[]> heap;
    if (layout.buffer_bytes > sizeof stack_cells || count > kStackArguments) [[unlikely]] {
        heap.reset(new (std::nothrow) std::byte[layout.buffer_bytes + count * sizeof(void*)]);
        if (!heap) return PyErr_NoMemory();
        cells = heap.get();
        pointers = reinterpret_cast<void**>(cells + layout.buffer_bytes);
    }
    ArgumentSite site{parts.kernel.name(), 0, parts.stream.device};
    const launch::Parameter* parameter = layout.parameters.data();
    for (std::size_t i = 0; i < count; ++i, ++parameter) {
        std::byte* cell = cells + parameter->slot;
        pointers[i] = cell;
        site.index = i;
        if (!convert(arguments[i], *parameter, cell, site)) [[unlikely]]
            return nullptr;
    }
    if (site.ran_python && !still_open(parts, arguments, count)) [[unlikely]]
        return nullptr;
    if (launch::is_capturing(parts.stream.raw)) [[unlikely]]
        if (!keep_in_capture(parts)) return nullptr;
    CUresult status = call_driver(parts, count ? pointers : nullptr);
    if (status != CUDA_SUCCESS) [[unlikely]]
        return launch_failed(status, parts);
    Py_RETURN_NONE;
}

} // namespace cudamod::python
