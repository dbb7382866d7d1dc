#pragma once

#include "emulator/settings.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <vector>

namespace cudamod::emulator {

/// Addresses that handles are made of: reserved, never readable, so that a program that
/// dereferences a handle faults. One range per family, told apart by `family`.
std::uintptr_t handle_range(unsigned family);

constexpr std::uintptr_t kHandleRangeBytes = std::uintptr_t{256} << 20;
constexpr std::uintptr_t kHandleStride = 64;

/// The live objects of one family by raw handle. Nothing that a caller hands in is dereferenced
/// before it was found here. Guarded by the driver's lock.
template <class Raw, class Object>
class HandleTable {
  public:
    explicit HandleTable(unsigned family) : base_(handle_range(family)) {}

    Raw insert(std::shared_ptr<Object> object) {
        std::size_t slot = slots_.size();
        if (free_.size() > reuse_after()) {
            slot = free_.front();
            free_.pop_front();
        } else {
            if (slot >= kHandleRangeBytes / kHandleStride) throw std::bad_alloc();
            slots_.emplace_back();
        }
        slots_[slot] = std::move(object);
        ++live_;
        return reinterpret_cast<Raw>(base_ + slot * kHandleStride);
    }

    /// Null when the handle names no live object.
    std::shared_ptr<Object> find(Raw raw) const {
        const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(raw) - base_;
        const std::size_t slot = offset / kHandleStride;
        if (offset % kHandleStride || slot >= slots_.size()) return nullptr;
        return slots_[slot];
    }

    /// True for a handle that this table gave out once and whose object is gone.
    bool is_stale(Raw raw) const {
        const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(raw) - base_;
        return offset % kHandleStride == 0 && offset / kHandleStride < slots_.size() && !find(raw);
    }

    void erase(Raw raw) {
        const std::size_t slot = (reinterpret_cast<std::uintptr_t>(raw) - base_) / kHandleStride;
        slots_[slot].reset();
        free_.push_back(slot);
        --live_;
    }

    std::size_t live() const { return live_; }

    template <class Visitor>
    void visit(Visitor&& visitor) const {
        for (const auto& object : slots_) {
            if (object) visitor(object);
        }
    }

  private:
    // The card's driver reuses a handle's value at once, as its allocator does. Reusing it late
    // lets strict tell a stale handle from a live one.
    static std::size_t reuse_after() { return settings().manner == Manner::strict ? 65'536 : 0; }

    std::uintptr_t base_;
    std::vector<std::shared_ptr<Object>> slots_;
    std::deque<std::size_t> free_;
    std::size_t live_ = 0;
};

} // namespace cudamod::emulator
