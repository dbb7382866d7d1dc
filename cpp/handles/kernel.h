#pragma once

#include "handles/handle.h"
#include "handles/library.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <string>
#include <string_view>

namespace cudamod::handles {

/// A kernel and the library that it lives in; a foreign kernel may have none.
struct KernelBox {
    using Raw = CUkernel;
    static constexpr const char* kKind = "kernel";
    Raw raw;
    LibraryHandle library;
    std::string name;
    Tracked tracked;

    KernelBox(Raw raw_, LibraryHandle library_, std::string name_)
        : raw(raw_), library(std::move(library_)), name(std::move(name_)) {}
    ~KernelBox();
    /// A kernel ends with its library.
    Lifetime lifetime() const { return library ? Lifetime::Owned : Lifetime::Borrowed; }
    std::vector<Dependency> dependencies() const {
        if (!library) return {};
        return {{LibraryBox::kKind, value_of(*library)}};
    }
    KernelBox(const KernelBox&) = delete;
    KernelBox& operator=(const KernelBox&) = delete;
};
using KernelHandle = Handle<KernelBox>;

/// The kernel of a name, or null when the library has none (CUDA_ERROR_NOT_FOUND).
KernelHandle find_kernel(const LibraryHandle& library, const std::string& name);

/// Wraps somebody else's kernel, or finds our own again, also when only its library is left.
KernelHandle kernel_from_raw(CUkernel raw, const LibraryHandle& library);

/// Called by a library's destructor: its kernels' values may come again as those of others.
void forget_kernels_of(CUlibrary library) noexcept;

} // namespace cudamod::handles
