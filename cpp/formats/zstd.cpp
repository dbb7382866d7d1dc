#include "formats/zstd.h"

#if defined(CUDAMOD_HAVE_ZSTD)
#include <zstd.h>
#else
#include <dlfcn.h>
#endif

namespace cudamod::formats {
namespace {

// A run of 128 KiB takes four bytes: no frame expands further than that.
constexpr std::uint64_t kMostPerZstdByte = 32768;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;

Failure bad_zstd(std::string what) {
    return Failure{"zstd: " + std::move(what)};
}

struct Zstd {
    std::size_t (*decompress)(void*, std::size_t, const void*, std::size_t) = nullptr;
    unsigned (*is_error)(std::size_t) = nullptr;
    const char* (*error_name)(std::size_t) = nullptr;

    bool complete() const { return decompress && is_error && error_name; }
};

#if defined(CUDAMOD_HAVE_ZSTD)
Zstd load() {
    return {ZSTD_decompress, ZSTD_isError, ZSTD_getErrorName};
}
#else
template <class Function>
void resolve(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
}

Zstd load() {
    Zstd zstd;
    void* library =
        dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL); // stays open: its functions are kept
    if (!library) return zstd;
    resolve(library, "ZSTD_decompress", zstd.decompress);
    resolve(library, "ZSTD_isError", zstd.is_error);
    resolve(library, "ZSTD_getErrorName", zstd.error_name);
    return zstd;
}
#endif

} // namespace

Result<std::vector<std::byte>> decompress_zstd(Bytes frame, std::uint64_t size) {
    static const Zstd zstd = load();
    if (!zstd.complete()) {
        return bad_zstd(
            "the image is compressed with zstd and there is no libzstd.so.1; install it, "
            "or compile with "
            "--compress-mode=none (nvcc) or --compress=false (fatbinary)");
    }
    if (size > kLargest || size / kMostPerZstdByte > frame.size()) {
        return bad_zstd(std::to_string(frame.size()) + " bytes can't hold " + std::to_string(size));
    }
    std::vector<std::byte> out(static_cast<std::size_t>(size));
    const std::size_t done = zstd.decompress(out.data(), out.size(), frame.data(), frame.size());
    if (zstd.is_error(done)) return bad_zstd(zstd.error_name(done));
    if (done != size) {
        return bad_zstd("decodes to " + std::to_string(done) + " bytes, not " +
                        std::to_string(size));
    }
    return out;
}

} // namespace cudamod::formats
