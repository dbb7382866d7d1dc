#pragma once

#include "handles/handle.h"
#include "handles/image_memory.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cudamod::handles {

/// What the driver's compiler writes while it loads an image. The driver keeps the addresses, so
/// the buffers live as long as the library.
class JitLog {
  public:
    static constexpr std::size_t kErrorBytes = 32 << 10, kInfoBytes = 8 << 10;

    JitLog();
    std::string error() const { return error_.get(); }
    std::string info() const { return info_.get(); }
    char* error_buffer() const { return error_.get(); }
    char* info_buffer() const { return info_.get(); }

  private:
    std::unique_ptr<char[]> error_, info_;
};

struct LoadOptions {
    /// Options of the driver's compiler, as cuLibraryLoadData takes them.
    std::vector<std::pair<CUjit_option, std::uintptr_t>> jit;
    /// The driver may use the image where it is instead of a copy of its own.
    bool preserve_binary = false;
};

/// What the driver may read and write until a library is unloaded.
struct UsedByDriver {
    std::optional<JitLog> log;
    std::shared_ptr<const ImageMemory> image; ///< only a preserved one
};

struct LibraryBox {
    using Raw = CUlibrary;
    static constexpr const char* kKind = "library";
    Raw raw;
    std::size_t image_bytes;
    std::shared_ptr<const UsedByDriver> used;
    Tracked tracked;

    LibraryBox(Raw raw_, std::size_t image_bytes_, std::shared_ptr<const UsedByDriver> used_)
        : raw(raw_), image_bytes(image_bytes_), used(std::move(used_)) {}
    ~LibraryBox();
    Lifetime lifetime() const { return Lifetime::Owned; }
    std::vector<Dependency> dependencies() const { return {}; }
    LibraryBox(const LibraryBox&) = delete;
    LibraryBox& operator=(const LibraryBox&) = delete;
};
using LibraryHandle = Handle<LibraryBox>;

/// Loads an image and makes sure that it is a good one: the driver is lazy, so a bad image "loads".
/// Raises the driver's status with the log of its compiler; a bad image is unloaded again.
/// `compiled`: the driver may compile it, so give it a log. `subject` names the image in errors.
LibraryHandle load_library(const std::shared_ptr<const ImageMemory>& image, bool compiled,
                           const LoadOptions& options, const std::string& subject);

/// The names of the kernels, where the driver tells them (12.4 and newer), else none.
std::vector<std::string> kernel_names(const LibraryHandle& library);

/// A variable of the image, where it lies in one context.
struct GlobalVariable {
    CUdeviceptr address;
    std::size_t size;
};

/// The variable (__device__, __constant__ or __managed__) of a name in the current context; nothing
/// when the library has none. Loads the library's module into the context.
std::optional<GlobalVariable> find_global(const LibraryHandle& library, const std::string& name);

/// The library's module in the current context, which lives as long as the library.
CUmodule module_of(const LibraryHandle& library);

/// Makes the graph that `stream` is capturing into (if it is) retain the library, once per capture:
/// a graph outlives its library only in appearance.
void retain_in_capture(CUstream stream, const LibraryHandle& library);

} // namespace cudamod::handles
