#pragma once

#include "handles/handle.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <span>
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

/// Options of the driver's compiler, as cuLibraryLoadData takes them.
struct LoadOptions {
    std::vector<std::pair<CUjit_option, std::uintptr_t>> jit;
};

struct LibraryBox {
    using Raw = CUlibrary;
    static constexpr const char* kKind = "library";
    Raw raw;
    std::size_t image_bytes;
    std::unique_ptr<JitLog> log;
    Tracked tracked;

    LibraryBox(Raw raw_, std::size_t image_bytes_, std::unique_ptr<JitLog> log_)
        : raw(raw_), image_bytes(image_bytes_), log(std::move(log_)) {}
    ~LibraryBox();
    Lifetime lifetime() const { return Lifetime::Owned; }
    std::vector<Dependency> dependencies() const { return {}; }
    LibraryBox(const LibraryBox&) = delete;
    LibraryBox& operator=(const LibraryBox&) = delete;
};
using LibraryHandle = Handle<LibraryBox>;

/// Loads an image that ends in a NUL byte beyond `image` (the driver reads PTX up to it) and makes
/// sure that it is a good one: the driver is lazy, so a bad image "loads". Raises the driver's
/// status with the log of its compiler. `compiled`: the driver may compile it, so give it a log.
/// `subject` names the image in errors.
LibraryHandle load_library(std::span<const char> image, bool compiled, const LoadOptions& options,
                           const std::string& subject);

/// The names of the kernels, where the driver tells them (12.4 and newer), else none.
std::vector<std::string> kernel_names(const LibraryHandle& library);

/// Makes the graph that `stream` is capturing into (if it is) retain the library, once per capture:
/// a graph outlives its library only in appearance.
void retain_in_capture(CUstream stream, const LibraryHandle& library);

} // namespace cudamod::handles
