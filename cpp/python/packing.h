#pragma once

#include "launch/layout.h"
#include "python/argument.h"

#include <Python.h>

#include <cstddef>
#include <memory>
#include <new>

namespace cudamod::python {

/// Room for the packed arguments of one call, on its stack; a rare kernel with more takes the heap.
/// It never belongs to a launcher: a conversion may run Python that launches it again.
class ArgumentRoom {
  public:
    /// False when there is no memory. Without it the stack's room is what there is.
    bool reserve(const launch::Layout& layout, std::size_t count) {
        if (layout.buffer_bytes <= sizeof stack_cells_ && count <= kStackArguments) [[likely]]
            return true;
        heap_.reset(new (std::nothrow) std::byte[layout.buffer_bytes + count * sizeof(void*)]);
        if (!heap_) {
            PyErr_NoMemory();
            return false;
        }
        cells = heap_.get();
        pointers = reinterpret_cast<void**>(cells + layout.buffer_bytes);
        return true;
    }

  private:
    static constexpr std::size_t kStackBytes = 4096, kStackArguments = 256;
    std::unique_ptr<std::byte[]> heap_;

  public:
    std::byte* cells = stack_cells_;
    void** pointers = stack_pointers_; // what the driver takes: the address of each argument

  private:
    // In this order: were a pointer's place a multiple of 4 KiB from its cell's, the processor
    // would take the driver's read of the pointer for one of the cell, and wait until that is
    // written.
    void* stack_pointers_[kStackArguments];
    alignas(16) std::byte stack_cells_[kStackBytes];
};

/// Writes every argument into its cell (`cells + slot`) and the cell's address into `pointers`.
/// `count` is the layout's. False with a Python error set. May run Python; afterwards
/// `site.something_closed()` tells whether a buffer or stream was closed meanwhile.
inline bool pack(const launch::Layout& layout, PyObject* const* arguments, std::size_t count,
                 std::byte* cells, void** pointers, ArgumentSite& site) {
    const launch::Parameter* parameter = layout.parameters.data();
    for (std::size_t i = 0; i < count; ++i, ++parameter) {
        std::byte* cell = cells + parameter->slot;
        pointers[i] = cell;
        if (convert_common(arguments[i], *parameter, cell, site.device)) [[likely]]
            continue;
        site.index = i;
        site.may_run_python();
        if (!convert_any(arguments[i], *parameter, cell, site)) [[unlikely]]
            return false;
    }
    return true;
}

} // namespace cudamod::python
