#include "python/launch_path.h"

#include "driver/log.h"
#include "driver/status.h"
#include "handles/context.h"
#include "handles/library.h"
#include "python/error.h"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace cudamod::python {

namespace {

int limit(int device, CUdevice_attribute attribute) {
    int value = 0;
    if (driver::table.cuDeviceGetAttribute(&value, attribute, device) != CUDA_SUCCESS) return 0;
    return value;
}

/// What is wrong with a configuration that the driver refused, in terms of the limits that it
/// exceeds.
std::string explain(const LaunchParts& parts) {
    const launch::Shape& shape = parts.config.shape();
    int device = parts.stream.device;
    struct Axis {
        const char* name;
        unsigned value;
        CUdevice_attribute attribute;
    };
    launch::Dim3 cluster = shape.cluster.value_or(launch::Dim3{});
    const Axis axes[] = {{"block x", shape.block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
                         {"block y", shape.block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
                         {"block z", shape.block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
                         {"grid x", shape.grid.x * cluster.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
                         {"grid y", shape.grid.y * cluster.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
                         {"grid z", shape.grid.z * cluster.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z}};
    for (const Axis& axis : axes)
        if (int most = limit(device, axis.attribute);
            most > 0 && axis.value > static_cast<unsigned>(most))
            return std::string(axis.name) + " = " + std::to_string(axis.value) +
                   " exceeds the device's limit of " + std::to_string(most);
    int threads = 0;
    if (driver::table.cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                           parts.kernel.raw(), device) == CUDA_SUCCESS &&
        shape.block.product() > static_cast<std::uint64_t>(threads))
        return "block " + shape.block.text() + " = " + std::to_string(shape.block.product()) +
               " threads exceeds the kernel's limit of " + std::to_string(threads);
    if (shape.cluster && limit(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
        return "thread block clusters need compute capability 9.0";
    if (cluster.product() > 8)
        return "a cluster of more than 8 blocks needs the kernel's attribute "
               "non_portable_cluster_size_allowed";
    int width = 0;
    if (!shape.cluster &&
        driver::table.cuKernelGetAttribute(&width, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                           parts.kernel.raw(), device) == CUDA_SUCCESS &&
        width > 1 && shape.grid.x % static_cast<unsigned>(width))
        return "the kernel was compiled for clusters of width " + std::to_string(width) +
               ", of which grid x = " + std::to_string(shape.grid.x) + " is no multiple";
    if (shape.cooperative && !limit(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
        return "the device has no cooperative launch";
    return {};
}

} // namespace

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
        if (std::string why = explain(parts); !why.empty()) subject += ": " + why;
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
    if (shape.shmem_size) kernel.allow_dynamic_shared(stream.device, shape.shmem_size);
    if (!shape.cooperative) return;
    // A block that is too large is for the launch to refuse: it says which limit is exceeded.
    std::uint64_t threads = shape.block.product();
    if (threads > static_cast<unsigned>(
                      kernel.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, stream.device)))
        return;
    handles::ContextScope scope(stream.context);
    int blocks = 0, multiprocessors = 0;
    driver::check(driver::table.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                      &blocks, reinterpret_cast<CUfunction>(kernel.raw()),
                      static_cast<int>(threads), shape.shmem_size),
                  "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                  [&] { return "kernel '" + kernel.name() + "'"; });
    driver::check(driver::table.cuDeviceGetAttribute(
                      &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, stream.device),
                  "cuDeviceGetAttribute", "multiprocessor count");
    std::uint64_t most =
        std::uint64_t{static_cast<unsigned>(blocks)} * static_cast<unsigned>(multiprocessors);
    std::uint64_t asked = shape.grid.product() * shape.cluster.value_or(launch::Dim3{}).product();
    if (asked > most)
        throw std::invalid_argument(
            "kernel '" + kernel.name() + "': the specified grid size (" +
            std::to_string(shape.grid.x) + " * " + std::to_string(shape.grid.y) + " * " +
            std::to_string(shape.grid.z) + ") exceeds the limit (" + std::to_string(most) +
            ") of blocks that can run at once, as a cooperative launch must");
}

} // namespace cudamod::python
