/// Memory that kernels allocate with malloc. It lives until it is freed or the process ends, as on
/// a card until the context ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace cudamod::emulator::ptx {

class DeviceHeap {
  public:
    static constexpr std::uint64_t kLimit = std::uint64_t{8} << 20; ///< the driver's default

    static DeviceHeap& instance();

    /// 0 when the heap is exhausted.
    std::uint64_t allocate(std::uint64_t bytes);
    /// False for an address that allocate() did not give, or that is free already.
    bool release(std::uint64_t address);
    /// Null when [address, address + size) is not inside one live allocation.
    std::byte* find(std::uint64_t address, std::uint64_t size);

  private:
    struct Piece {
        std::uint64_t bytes = 0;
        std::unique_ptr<std::byte[]> storage;
    };
    std::mutex mutex_;
    std::map<std::uint64_t, Piece> pieces_;
    std::uint64_t used_ = 0;
    std::uint64_t next_ = 0;
};

} // namespace cudamod::emulator::ptx
