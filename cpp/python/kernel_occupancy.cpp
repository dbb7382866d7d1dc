#include "python/kernel_occupancy.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "python/integer_argument.h"
#include "python/launch_config.h"
#include "python/named_tuple.h"
#include "python/public_call.h"
#include "python/stream.h"
#include "python/text.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace cudamod::python {

namespace {

CUfunction function_of(const KernelOccupancy& self) {
    return reinterpret_cast<CUfunction>(self.kernel->raw());
}

/// `values` says what was asked, when that has to be told.
template <class Values>
void kernel_occupancy_check(CUresult status, const char* call, const KernelOccupancy& self,
                            Values&& values) {
    driver::check(status, call, [&] {
        return "kernel '" + self.kernel->name() + "', " + values() +
               (status == CUDA_ERROR_INVALID_CONTEXT ? "; call Device.set_current() first" : "");
    });
}

/// The driver looks at the low 32 bits of a size (seen on an H200 with driver 580), so that one of
/// 2**40 bytes would fit. No block has as much as this, either.
std::size_t as_the_driver_reads(std::size_t bytes) {
    return std::min(bytes, std::size_t{std::numeric_limits<int>::max()});
}

int max_active_blocks_per_multiprocessor(const KernelOccupancy& self, nb::handle block,
                                         nb::handle dynamic_bytes) {
    begin_public_call();
    int block_size = int_argument(block, "max_active_blocks_per_multiprocessor: block_size");
    std::size_t dynamic_size = size_argument(
        dynamic_bytes, "max_active_blocks_per_multiprocessor: dynamic_shared_memory_size");
    int blocks = 0;
    kernel_occupancy_check(
        driver::table.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, function_of(self), block_size, as_the_driver_reads(dynamic_size)),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", self,
        [&] { return "block of " + std::to_string(block_size) + " threads"; });
    return blocks;
}

std::size_t available_dynamic_shared_memory_per_block(const KernelOccupancy& self, nb::handle count,
                                                      nb::handle block) {
    begin_public_call();
    int blocks = int_argument(
        count, "available_dynamic_shared_memory_per_block: num_blocks_per_multiprocessor");
    int block_size = int_argument(block, "available_dynamic_shared_memory_per_block: block_size");
    std::size_t bytes = 0;
    kernel_occupancy_check(driver::table.cuOccupancyAvailableDynamicSMemPerBlock(
                               &bytes, function_of(self), blocks, block_size),
                           "cuOccupancyAvailableDynamicSMemPerBlock", self, [&] {
                               return std::to_string(blocks) + " blocks of " +
                                      std::to_string(block_size) + " threads";
                           });
    return bytes;
}

/// The Python callable that the driver asks through `ask_callable`, for the length of one query.
/// The driver passes no user data. Queries nest: a callable may make one.
struct CallableQuery {
    PyObject* callable;
    CallableQuery* outer;
    bool failed = false;
};
thread_local CallableQuery* innermost_query = nullptr;

/// Runs with the interpreter lock held, which that query keeps. An exception stays set and ends the
/// asking; 0 bytes go back for the rest of the query.
std::size_t CUDA_CB ask_callable(int block_size) {
    CallableQuery& query = *innermost_query;
    if (query.failed) return 0;
    PyObject* answer = PyObject_CallFunction(query.callable, "i", block_size);
    PyObject* index = answer ? PyNumber_Index(answer) : nullptr;
    Py_XDECREF(answer);
    std::size_t bytes = 0;
    if (index) {
        bytes = PyLong_AsSize_t(index);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError,
                         "dynamic_shared_memory_needed: the callable answered %s bytes for a block "
                         "of %d threads",
                         text_of(index).c_str(), block_size);
        }
        Py_DECREF(index);
    }
    query.failed = PyErr_Occurred() != nullptr;
    return query.failed ? 0 : as_the_driver_reads(bytes);
}

/// The address of a C function from ctypes, cffi or an object of cuda.bindings, or null when it is
/// none.
CUoccupancyB2DSize c_function(nb::handle object) {
    std::string module = nb::cast<std::string>(
        nb::str(nb::getattr(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))),
                            "__module__", nb::str(""))));
    PyTypeObject* type = Py_TYPE(object.ptr());
    for (PyTypeObject* base = type; base; base = base->tp_base)
        if (std::string_view(base->tp_name) == "_ctypes.CFuncPtr" ||
            std::string_view(base->tp_name) == "_ctypes.PyCFuncPtr") {
            nb::module_ ctypes = nb::module_::import_("ctypes");
            nb::object address =
                nb::getattr(ctypes.attr("cast")(object, ctypes.attr("c_void_p")), "value");
            return address.is_none()
                       ? nullptr
                       : reinterpret_cast<CUoccupancyB2DSize>(nb::cast<std::uintptr_t>(address));
        }
    if (std::string_view(type->tp_name).starts_with("_cffi_backend.") &&
        nb::hasattr(object, "__int__") == false) {
        nb::module_ cffi = nb::module_::import_("cffi");
        nb::object ffi = cffi.attr("FFI")();
        return reinterpret_cast<CUoccupancyB2DSize>(
            nb::cast<std::uintptr_t>(nb::int_(ffi.attr("cast")("uintptr_t", object))));
    }
    if (module.starts_with("cuda.bindings") &&
        std::string_view(type->tp_name).ends_with("CUoccupancyB2DSize"))
        return reinterpret_cast<CUoccupancyB2DSize>(nb::cast<std::uintptr_t>(nb::int_(object)));
    return nullptr;
}

NamedTuple potential_block_size;

nb::object max_potential_block_size(const KernelOccupancy& self, nb::handle needed,
                                    nb::handle limit) {
    begin_public_call();
    int block_size_limit = int_argument(limit, "max_potential_block_size: block_size_limit");
    int grid = 0, block = 0;
    CUoccupancyB2DSize by_size = nullptr;
    std::size_t fixed = 0;
    CallableQuery query{nullptr, innermost_query};
    if (PyIndex_Check(needed.ptr()) && !PyBool_Check(needed.ptr())) {
        fixed = as_the_driver_reads(
            size_argument(needed, "max_potential_block_size: dynamic_shared_memory_needed"));
    } else if (CUoccupancyB2DSize function = c_function(needed)) {
        by_size = function;
    } else if (PyCallable_Check(needed.ptr())) {
        by_size = ask_callable;
        query.callable = needed.ptr();
    } else {
        PyErr_Format(PyExc_TypeError,
                     "dynamic_shared_memory_needed expected to have type int, a C function or a "
                     "callable, got %s",
                     Py_TYPE(needed.ptr())->tp_name);
        throw nb::python_error();
    }
    if (query.callable) innermost_query = &query;
    CUresult status = driver::table.cuOccupancyMaxPotentialBlockSize(
        &grid, &block, function_of(self), by_size, fixed, block_size_limit);
    if (query.callable) innermost_query = query.outer;
    if (query.failed) throw nb::python_error();
    kernel_occupancy_check(status, "cuOccupancyMaxPotentialBlockSize", self,
                           [&] { return "block size limit " + std::to_string(block_size_limit); });
    return potential_block_size(grid, block);
}

template <class Query>
int cluster_query(const KernelOccupancy& self, const LaunchConfig& config, nb::handle stream,
                  const char* name, Query query) {
    begin_public_call();
    nb::object held = stream_argument(stream);
    const handles::StreamBox& box =
        handles::box_of<handles::StreamBox>(open_handle(*instance<Stream>(held.ptr())));
    if (config.shape().attributes) launch::require_driver_for(*config.shape().attributes);
    handles::ContextScope scope(box.context);
    LaunchConfig::Native native;
    config.copy_to(native, box.raw);
    int answer = 0;
    kernel_occupancy_check(query(&answer, function_of(self), &native.config), name, self,
                           [&] { return "block " + config.shape().block.text(); });
    return answer;
}

int max_potential_cluster_size(const KernelOccupancy& self, const LaunchConfig& config,
                               nb::object stream) {
    return cluster_query(self, config, stream, "cuOccupancyMaxPotentialClusterSize", [](auto... a) {
        return driver::table.cuOccupancyMaxPotentialClusterSize(a...);
    });
}

int max_active_clusters(const KernelOccupancy& self, const LaunchConfig& config,
                        nb::object stream) {
    return cluster_query(self, config, stream, "cuOccupancyMaxActiveClusters", [](auto... a) {
        return driver::table.cuOccupancyMaxActiveClusters(a...);
    });
}

constexpr const char* kKernelOccupancyOrigin = "Use Kernel.occupancy.";
PyType_Slot kernel_occupancy_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kKernelOccupancyOrigin>)},
    {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
    {0, nullptr}};

} // namespace

void bind_kernel_occupancy(nb::module_& module) {
    potential_block_size.define(module, "MaxPotentialBlockSizeOccupancyResult",
                                "Of KernelOccupancy.max_potential_block_size.",
                                {{"min_grid_size", "blocks that fill the device"},
                                 {"max_block_size", "threads per block"}});
    nb::class_<KernelOccupancy>(module, "KernelOccupancy", nb::type_slots(kernel_occupancy_slots),
                                nb::is_weak_referenceable(),
                                "The driver's occupancy answers for a kernel on the current "
                                "device. All raise CUDAError when\n"
                                "no context is current.")
        .def("max_active_blocks_per_multiprocessor", max_active_blocks_per_multiprocessor,
             nb::arg("block_size").none(), nb::arg("dynamic_shared_memory_size").none(),
             nb::sig("def max_active_blocks_per_multiprocessor(self, block_size: int, "
                     "dynamic_shared_memory_size: int) -> int"),
             "Blocks of `block_size` threads that fit on a multiprocessor at once, each with\n"
             "`dynamic_shared_memory_size` bytes; 0 when that is more than the kernel may have.")
        .def("max_potential_block_size", max_potential_block_size,
             nb::arg("dynamic_shared_memory_needed").none(), nb::arg("block_size_limit").none(),
             nb::sig("def max_potential_block_size(self, dynamic_shared_memory_needed: int | "
                     "Callable[[int], int] | object, block_size_limit: int) -> "
                     "MaxPotentialBlockSizeOccupancyResult"),
             "The block size with the highest occupancy and the grid that fills the device: "
             "(min_grid_size,\n"
             "max_block_size). The dynamic shared memory is an int, or depends on the block size: "
             "a C function\n"
             "`size_t (*)(int)` from ctypes or cffi, or a Python callable, whose exceptions come "
             "out. A limit of 0\n"
             "is none.")
        .def("available_dynamic_shared_memory_per_block", available_dynamic_shared_memory_per_block,
             nb::arg("num_blocks_per_multiprocessor").none(), nb::arg("block_size").none(),
             nb::sig("def available_dynamic_shared_memory_per_block(self, "
                     "num_blocks_per_multiprocessor: int, block_size: int) -> int"),
             "Bytes that each block may have when so many blocks share a multiprocessor.")
        .def("max_potential_cluster_size", max_potential_cluster_size, nb::arg("config"),
             nb::kw_only(), nb::arg("stream").none(),
             nb::sig("def max_potential_cluster_size(self, config: LaunchConfig, *, stream: "
                     "object) -> int"),
             "The largest cluster, in blocks, that the configuration can have.")
        .def("max_active_clusters", max_active_clusters, nb::arg("config"), nb::kw_only(),
             nb::arg("stream").none(),
             nb::sig(
                 "def max_active_clusters(self, config: LaunchConfig, *, stream: object) -> int"),
             "Clusters of the configuration that can run on the device at once.")
        .def("__repr__", [](const KernelOccupancy& self) {
            return "<KernelOccupancy kernel='" + self.kernel->name() + "'>";
        });
}

} // namespace cudamod::python
