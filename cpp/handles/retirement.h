#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>

namespace cudamod::handles {

/// Takes a library whose last handle is gone: from any thread, at once and without a driver call,
/// since an unload waits for the whole device. With CUDAMOD_UNLOAD=now it is unloaded here, with
/// `never` it is left. `used`: memory that the driver may use until the library is unloaded.
void retire(CUlibrary library, std::size_t image_bytes, std::shared_ptr<const void> used) noexcept;

/// Unloads a library that nobody has used at once: nothing of it is on a device, so the driver
/// waits for nothing. With `never` it is left.
void discard(CUlibrary library, std::shared_ptr<const void> used) noexcept;

/// Unloads every retired library and answers how many. May wait for the device; with the
/// interpreter lock released, no lock of ours held, the thread's capture mode relaxed.
std::size_t reclaim() noexcept;

/// The same, when more is retired than the limits allow. Called by a load.
void reclaim_beyond_limits() noexcept;

/// When a load unloads what is retired; 0 leaves that dimension to `reclaim`.
struct RetirementLimits {
    std::size_t libraries = 64;
    std::size_t image_bytes = std::size_t{64} << 20;
};
RetirementLimits retirement_limits() noexcept;
void set_retirement_limits(RetirementLimits limits) noexcept;

struct Retired {
    std::size_t libraries, image_bytes;
};
Retired retired() noexcept;

enum class UnloadManner { Deferred, Now, Never };
void set_unload_manner(UnloadManner manner) noexcept;

} // namespace cudamod::handles
