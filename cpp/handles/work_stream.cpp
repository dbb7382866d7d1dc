#include "handles/work_stream.h"

#include "handles/context.h"

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

namespace cudamod::handles {

namespace {

constexpr std::size_t kSlots = 256, kProbes = 4;
std::array<std::atomic<const StreamHandle*>, kSlots> remembered{};

/// The default streams by their one name.
CUstream named(CUstream raw) {
    return raw ? raw : CU_STREAM_LEGACY;
}

std::size_t start_of(CUstream raw, int device) {
    return (reinterpret_cast<std::uintptr_t>(raw) >> 4 ^ reinterpret_cast<std::uintptr_t>(raw)) +
           static_cast<std::size_t>(device) * 7;
}

} // namespace

const StreamBox* known_work_stream(CUstream raw, int device) noexcept {
    raw = named(raw);
    std::size_t start = start_of(raw, device);
    for (std::size_t i = 0; i < kProbes; ++i) {
        const StreamHandle* entry =
            remembered[(start + i) % kSlots].load(std::memory_order_acquire);
        if (!entry) return nullptr;
        const StreamBox& box = box_of<StreamBox>(*entry);
        if (box.raw == raw && box.device == device) return &box;
    }
    return nullptr;
}

StreamHandle work_stream(CUstream raw, int device) {
    if (device < 0 || device >= device_count())
        throw std::invalid_argument("a stream of device " + std::to_string(device) +
                                    ", which does not exist");
    raw = named(raw);
    bool is_default = raw == CU_STREAM_LEGACY || raw == CU_STREAM_PER_THREAD;
    StreamHandle handle =
        is_default ? default_stream(device, raw == CU_STREAM_PER_THREAD) : stream_from_raw(raw);
    const StreamBox& box = box_of<StreamBox>(handle);
    if (box.device != device)
        throw std::invalid_argument("a stream of device " + std::to_string(box.device) +
                                    " was named as device " + std::to_string(device) + "'s");
    if (box.owned) return handle; // it may end
    auto* fresh = new StreamHandle(handle);
    std::size_t start = start_of(raw, device);
    for (std::size_t i = 0; i < kProbes; ++i) {
        const StreamHandle* empty = nullptr;
        if (remembered[(start + i) % kSlots].compare_exchange_strong(empty, fresh,
                                                                     std::memory_order_acq_rel))
            return handle;
    }
    delete fresh; // a full table finds it anew each time
    return handle;
}

} // namespace cudamod::handles
