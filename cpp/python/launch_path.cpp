#include "python/launch_path.h"

#include "driver/log.h"
#include "driver/status.h"
#include "handles/library.h"
#include "launch/explanation.h"
#include "python/error.h"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace cudamod::python {

PyObject* wrong_count(const launch::Kernel& kernel, std::size_t wanted, std::size_t given) {
    PyErr_Format(PyExc_TypeError, "kernel '%s' takes %zu argument%s, got %zu",
                 kernel.name().c_str(), wanted, wanted == 1 ? "" : "s", given);
    return nullptr;
}

bool still_open(const LaunchParts& parts, PyObject* const* arguments, std::size_t count) {
    if (!parts.open) {
        PyErr_Format(PyExc_RuntimeError,
                     "kernel '%s': Stream has been closed while the arguments were converted",
                     parts.kernel.name().c_str());
        return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (!PyObject_TypeCheck(arguments[i], Buffer::python_type)) continue;
        if (!nb::inst_ptr<Buffer>(nb::handle(arguments[i]))->closed) continue;
        PyErr_Format(PyExc_RuntimeError,
                     "kernel '%s', argument %zu: Buffer has been closed while the arguments were "
                     "converted",
                     parts.kernel.name().c_str(), i);
        return false;
    }
    return true;
}

PyObject* launch_failed(CUresult status, const LaunchParts& parts) {
    try {
        // Asking for limits below may fail too and say so; the launch's own words are taken first.
        std::string said = driver::take_log(status);
        const launch::Shape& shape = parts.config.shape();
        std::string subject = "kernel '" + parts.kernel.name() + "', grid " + shape.grid.text() +
                              ", block " + shape.block.text();
        if (shape.cluster) subject += ", cluster " + shape.cluster->text();
        if (shape.shmem_size)
            subject += ", " + std::to_string(shape.shmem_size) + " bytes of dynamic shared memory";
        if (std::string why = launch::explain(status, parts.kernel, parts.config, parts.stream);
            !why.empty())
            subject += ": " + why;
        driver::raise(status, "cuLaunchKernelEx", std::move(subject), std::move(said));
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* keep_in_capture(const LaunchParts& parts) {
    try {
        if (parts.kernel.library())
            handles::retain_in_capture(parts.stream.raw, parts.kernel.library());
        return Py_None;
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

void make_ready(const launch::Kernel& kernel, const launch::Shape& shape,
                const handles::StreamBox& stream) {
    if (shape.attributes) {
        launch::require_driver_for(*shape.attributes);
        launch::require_context_of(*shape.attributes, stream.context);
    }
    if (shape.shmem_size) kernel.allow_dynamic_shared(stream.device, shape.shmem_size);
    // The driver itself counts how many clusters run at once.
    if (!shape.cooperative || shape.cluster) return;
    // A block that is too large is for the launch to refuse: it says which limit is exceeded.
    std::uint64_t threads = shape.block.product();
    if (threads > static_cast<unsigned>(
                      kernel.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, stream.device)))
        return;
    std::uint64_t most = launch::most_blocks_at_once(kernel, shape, stream);
    std::uint64_t asked = shape.blocks().product();
    if (asked > most)
        throw std::invalid_argument(
            "kernel '" + kernel.name() + "': the specified grid size (" +
            std::to_string(shape.grid.x) + " * " + std::to_string(shape.grid.y) + " * " +
            std::to_string(shape.grid.z) + ") exceeds the limit (" + std::to_string(most) +
            ") of blocks that can run at once, as a cooperative launch must");
}

} // namespace cudamod::python
