#include "emulator/ptx/bulk_copy.h"

#include "emulator/ptx/memory_barrier.h"
#include "emulator/ptx/tensor_map.h"
#include "emulator/ptx/worker.h"

#include <array>
#include <bit>
#include <cstring>

namespace cudamod::emulator::ptx::bulk {
namespace {

using std::int32_t, std::int64_t, std::uint32_t, std::uint64_t;

constexpr uint32_t kBlockMask = (1u << kClusterRankShift) - 1;

Settings settings_of(const Instruction& i) {
    return std::bit_cast<Settings>(i.extra);
}

/// The address in the shared memory of the block of that rank.
uint64_t in_block(uint64_t address, uint32_t rank) {
    return (address & kBlockMask) | uint64_t{rank + 1} << kClusterRankShift;
}

/// Calls `apply(address, barrier)` for the destination, or for each block of a multicast.
template <class F>
void each_destination(const Warp& w, const Instruction& i, unsigned l, uint64_t address,
                      uint64_t barrier, Slot blocks, F apply) {
    if (settings_of(i).multicast == 0) {
        apply(address, barrier);
        return;
    }
    const uint32_t ranks = w.at<std::uint16_t>(blocks)[l];
    const std::size_t count = w.block->cluster->blocks.size();
    if (ranks == 0 || ranks >> count != 0) {
        w.fault(FaultKind::IllegalInstruction, i, l,
                "multicast to blocks that the cluster does not have");
    }
    for (uint32_t rest = ranks; rest != 0; rest &= rest - 1) {
        const auto rank = static_cast<uint32_t>(__builtin_ctz(rest));
        apply(in_block(address, rank), in_block(barrier, rank));
    }
}

void complete(const Warp& w, const Instruction& i, unsigned l, uint64_t barrier, uint32_t bytes) {
    memory_barrier::complete_bytes(w, i, l, w.worker->find_shared(w, i, l, barrier, 8), bytes);
}

void move_bytes(const Settings& settings, std::byte* to, const std::byte* from, uint32_t bytes) {
    if (settings.reduces == 0) {
        std::memmove(to, from, bytes);
        return;
    }
    const auto type = static_cast<Type>(settings.type);
    const Combine combine = select_combine(static_cast<Reduction>(settings.reduction), type);
    for (uint32_t at = 0; at < bytes; at += size_of(type))
        combine(to + at, from + at);
}

/// The tensor that a lane's operands describe, checked.
class Tensor {
  public:
    Tensor(Warp& w, const Instruction& i, unsigned lane, bool write)
        : w_(w), i_(i), lane_(lane), write_(write) {
        const uint64_t address = w.at<uint64_t>(i.slots[kMap])[lane];
        if (address % 64 != 0) refuse("the tensor map is not aligned to 64 bytes");
        for (uint32_t at = 0; at < sizeof map_; at += 8) {
            std::memcpy(reinterpret_cast<std::byte*>(&map_) + at,
                        w.worker->find_generic(w, i, lane, address + at, 8, false), 8);
        }
        check();
        for (unsigned n = 0; n < map_.rank; ++n)
            origin_[n] = w.at<int32_t>(i.slots[kCoordinates + n])[lane];
    }

    uint32_t box_bytes() const {
        uint32_t bytes = size_of(type());
        for (unsigned n = 0; n < map_.rank; ++n)
            bytes *= map_.box[n];
        return bytes;
    }

    Type type() const {
        static constexpr Type kTypes[] = {Type::U8,  Type::U16, Type::U32, Type::S32, Type::U64,
                                          Type::S64, Type::F16, Type::F32, Type::F64, Type::BF16,
                                          Type::F32, Type::F32, Type::F32};
        return map_.data_type < std::size(kTypes) ? kTypes[map_.data_type] : Type::None;
    }

    /// Calls `apply(shared offset, global address or 0 outside of the tensor, bytes)` for elements,
    /// or for 16 bytes of them where `together` allows it.
    template <class F>
    void each_piece(bool together, F apply) const {
        const uint32_t size = size_of(type()), row_bytes = map_.box[0] * size,
                       rows = box_bytes() / row_bytes;
        const auto width = static_cast<int64_t>(map_.dimensions[0]);
        for (uint32_t row = 0; row < rows; ++row) {
            bool inside = true;
            const uint64_t base = row_address(row, inside);
            for (uint32_t at = 0; at < row_bytes;) {
                const int64_t column = int64_t{origin_[0]} + at / size;
                const bool here = inside && column >= 0 && column < width;
                const uint64_t address = base + static_cast<uint64_t>(column) * size;
                const bool wide = together && here && at % 16 == 0 && address % 16 == 0 &&
                                  column + 16 / size <= width && at + 16 <= row_bytes;
                apply(row * row_bytes + at, here ? address : uint64_t{0}, wide ? 16 : size);
                at += wide ? 16 : size;
            }
        }
    }

    std::byte* global(uint64_t address, uint32_t bytes) const {
        const Window& window = w_.worker->windows[i_.cache];
        if (address >= window.begin && address < window.end && window.end - address >= bytes)
            return window.host + (address - window.begin);
        return w_.worker->find_global(w_, i_, lane_, address, bytes, write_);
    }

    /// What elements outside of the tensor read as.
    uint64_t fill() const {
        if (map_.oob_fill == 0) return 0;
        switch (type()) {
        case Type::F16:
        case Type::BF16:
            return 0x7fff;
        case Type::F64:
            return 0x7fffffffffffffff;
        default:
            return 0x7fffffff;
        }
    }

    /// Where byte `offset` of the box lies, counted from the (aligned) start of the box.
    uint64_t swizzled(uint64_t start, uint32_t offset) const {
        const uint64_t address = start + offset;
        // 32, 64 and 128 bytes: 1, 2 and 3 bits of the address choose among 16-byte pieces.
        const uint64_t bits = (uint64_t{1} << map_.swizzle) - 1;
        return address ^ ((address >> 7 & bits) << 4);
    }

  private:
    [[noreturn]] void refuse(const std::string& why) const {
        w_.fault(FaultKind::IllegalInstruction, i_, lane_, why);
    }

    void check() const {
        if (map_.magic != TensorMap::kMagic)
            refuse("the 128 bytes are no tensor map of the emulated driver");
        if (map_.kind != TensorMap::Tiled || map_.interleave != 0 || map_.swizzle > 3 ||
            type() == Type::None) {
            refuse("the emulated driver copies tiles of whole bytes, without interleave, with a "
                   "swizzle of 32, 64 or 128 bytes: this tensor map is another");
        }
        if (map_.rank != settings_of(i_).rank) {
            refuse("the tensor map has rank " + std::to_string(map_.rank) +
                   ", the instruction is for " + std::to_string(settings_of(i_).rank));
        }
        for (unsigned n = 0; n < map_.rank; ++n) {
            if (map_.element_strides[n] != 1)
                refuse("the emulated driver copies tiles with element strides of 1 only");
            if (map_.box[n] == 0 || map_.box[n] > 256) refuse("the tensor map is damaged");
        }
    }

    uint64_t row_address(uint32_t row, bool& inside) const {
        uint64_t address = map_.address;
        for (unsigned n = 1; n < map_.rank; ++n) {
            const int64_t at = int64_t{origin_[n]} + row % map_.box[n];
            row /= map_.box[n];
            inside &= at >= 0 && static_cast<uint64_t>(at) < map_.dimensions[n];
            address += static_cast<uint64_t>(at) * map_.strides[n - 1];
        }
        return address;
    }

    Warp& w_;
    const Instruction& i_;
    unsigned lane_;
    bool write_;
    TensorMap map_;
    std::array<int32_t, TensorMap::kMaxRank> origin_{};
};

uint64_t shared_box(const Warp& w, const Instruction& i, unsigned l) {
    const uint64_t address = w.at<uint64_t>(i.slots[kShared])[l];
    if (address % 128 != 0) {
        w.fault(FaultKind::MisalignedAddress, i, l,
                "a tensor's box in shared memory must be aligned to 128 bytes");
    }
    return address;
}

template <class F>
void for_lanes(uint32_t mask, F apply) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
        apply(static_cast<unsigned>(__builtin_ctz(rest)));
}

} // namespace

void copy(Warp& w, const Instruction& i, std::uint32_t mask) {
    const Settings settings = settings_of(i);
    for_lanes(mask, [&](unsigned l) {
        const uint32_t bytes = w.at<uint32_t>(i.slots[kCount])[l];
        if (bytes % 16 != 0) {
            w.fault(FaultKind::MisalignedAddress, i, l,
                    "a bulk copy of " + std::to_string(bytes) +
                        " bytes: the size must be a multiple of 16");
        }
        const uint64_t to = w.at<uint64_t>(i.slots[kTo])[l],
                       from = w.at<uint64_t>(i.slots[kFrom])[l];
        const bool counted = i.slots[kBarrier] != kNoSlot;
        const uint64_t barrier = counted ? w.at<uint64_t>(i.slots[kBarrier])[l] : 0;
        each_destination(w, i, l, to, barrier, i.slots[kBlocks], [&](uint64_t there, uint64_t at) {
            if (bytes != 0) {
                const std::byte* source = w.worker->find_span(
                    w, i, l, static_cast<Where>(settings.from), from, bytes, false);
                std::byte* target = w.worker->find_span(w, i, l, static_cast<Where>(settings.to),
                                                        there, bytes, true);
                move_bytes(settings, target, source, bytes);
            }
            if (counted) complete(w, i, l, at, bytes);
        });
    });
}

void load_tensor(Warp& w, const Instruction& i, std::uint32_t mask) {
    for_lanes(mask, [&](unsigned l) {
        const Tensor tensor(w, i, l, false);
        const uint64_t fill = tensor.fill();
        each_destination(
            w, i, l, shared_box(w, i, l), w.at<uint64_t>(i.slots[kTensorBarrier])[l],
            i.slots[kTensorBlocks], [&](uint64_t start, uint64_t barrier) {
                tensor.each_piece(true, [&](uint32_t offset, uint64_t address, uint32_t bytes) {
                    std::byte* to =
                        w.worker->find_shared(w, i, l, tensor.swizzled(start, offset), bytes);
                    if (address != 0) {
                        std::memcpy(to, tensor.global(address, bytes), bytes);
                    } else {
                        std::memcpy(to, &fill, bytes);
                    }
                });
                complete(w, i, l, barrier, tensor.box_bytes());
            });
    });
}

void store_tensor(Warp& w, const Instruction& i, std::uint32_t mask) {
    for_lanes(mask, [&](unsigned l) {
        const Tensor tensor(w, i, l, true);
        const uint64_t start = shared_box(w, i, l);
        Settings settings = settings_of(i);
        settings.type = static_cast<uint32_t>(tensor.type());
        const bool combines =
            settings.reduces == 0 ||
            select_combine(static_cast<Reduction>(settings.reduction), tensor.type()) != nullptr;
        if (!combines) {
            w.fault(FaultKind::IllegalInstruction, i, l,
                    "the reduction does not exist for elements of type ." +
                        std::string(name_of(tensor.type())));
        }
        tensor.each_piece(
            settings.reduces == 0, [&](uint32_t offset, uint64_t address, uint32_t bytes) {
                if (address == 0) return;
                move_bytes(settings, tensor.global(address, bytes),
                           w.worker->find_shared(w, i, l, tensor.swizzled(start, offset), bytes),
                           bytes);
            });
    });
}

void store_async(Warp& w, const Instruction& i, std::uint32_t mask) {
    const Settings settings = settings_of(i);
    const uint32_t size = size_of(static_cast<Type>(settings.type));
    for_lanes(mask, [&](unsigned l) {
        uint32_t count = 0;
        while (count < 4 && i.slots[count] != kNoSlot)
            ++count;
        const uint64_t address =
            w.at<uint64_t>(i.slots[kAddressSlot])[l] + static_cast<uint64_t>(i.immediate);
        std::byte* to = w.worker->find_shared(w, i, l, address, size * count);
        for (uint32_t n = 0; n < count; ++n) {
            uint64_t value = 0;
            std::memcpy(&value, w.at<std::byte>(i.slots[n]) + std::size_t{l} * size, size);
            move_bytes(settings, to + n * size, reinterpret_cast<const std::byte*>(&value), size);
        }
        complete(w, i, l, w.at<uint64_t>(i.slots[4])[l], size * count);
    });
}

} // namespace cudamod::emulator::ptx::bulk
