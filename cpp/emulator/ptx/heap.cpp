#include "emulator/ptx/heap.h"

#include "emulator/ptx/address_space.h"

#include <cstring>

namespace cudamod::emulator::ptx {

DeviceHeap& DeviceHeap::instance() {
    static auto* const heap = new DeviceHeap;
    return *heap;
}

std::uint64_t DeviceHeap::allocate(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > kLimit || used_ + bytes > kLimit) return 0;
    const std::uint64_t rounded = (bytes + 31) / 16 * 16;
    if (next_ + rounded >= kWindowBytes) next_ = 0;
    const std::uint64_t address = kHeapWindow + 16 + next_;
    const auto after = pieces_.lower_bound(address);
    if (after != pieces_.end() && after->first < address + rounded) return 0;
    Piece piece{bytes, std::make_unique<std::byte[]>(rounded)};
    std::memset(piece.storage.get(), 0xcd, rounded);
    pieces_.emplace(address, std::move(piece));
    next_ += rounded;
    used_ += bytes;
    return address;
}

bool DeviceHeap::release(std::uint64_t address) {
    if (address == 0) return true;
    const std::lock_guard lock(mutex_);
    const auto found = pieces_.find(address);
    if (found == pieces_.end()) return false;
    used_ -= found->second.bytes;
    pieces_.erase(found);
    return true;
}

std::byte* DeviceHeap::find(std::uint64_t address, std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    auto found = pieces_.upper_bound(address);
    if (found == pieces_.begin()) return nullptr;
    --found;
    const std::uint64_t offset = address - found->first;
    if (offset > found->second.bytes || found->second.bytes - offset < size) return nullptr;
    return found->second.storage.get() + offset;
}

} // namespace cudamod::emulator::ptx
