/// Where the spaces lie in generic addresses.
///
/// All windows begin above 2^56, which no user-space address of x86-64 or AArch64 reaches, so they
/// can't collide with device addresses, nor with pinned or managed host memory. Global and constant
/// addresses are their own generic addresses.
#pragma once

#include <cstdint>

namespace cudamod::emulator::ptx {

constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kSharedWindow = 0x0100'0000'0000'0000;
constexpr std::uint64_t kLocalWindow = 0x0101'0000'0000'0000;
constexpr std::uint64_t kParameterWindow = 0x0102'0000'0000'0000;
constexpr std::uint64_t kFunctionWindow = 0x0103'0000'0000'0000;  ///< function addresses, 16 apart
constexpr std::uint64_t kHeapWindow = 0x0104'0000'0000'0000;      ///< device-side malloc
constexpr std::uint64_t kWorkspaceWindow = 0x0105'0000'0000'0000; ///< a cooperative grid's barrier
constexpr std::uint64_t kFirstWindow = kSharedWindow;

/// Shared memory of block `rank` of the cluster begins here in shared::cluster addresses; the
/// block's own shared memory also begins at 0.
constexpr std::uint32_t kClusterRankShift = 24;

constexpr bool in_window(std::uint64_t address, std::uint64_t window) {
    return address - window < kWindowBytes;
}

} // namespace cudamod::emulator::ptx
