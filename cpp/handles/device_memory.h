#pragma once

#include "handles/handle.h"
#include "handles/stream.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <cstddef>

namespace cudamod::handles {

/// Device memory and the stream on which it is freed.
struct DeviceMemoryBox {
    using Raw = CUdeviceptr;
    static constexpr const char* kKind = "device memory";
    Raw raw;
    std::size_t size;
    bool pooled;
    mutable StreamHandle free_on;
    Tracked tracked;

    DeviceMemoryBox(Raw raw_, std::size_t size_, bool pooled_, StreamHandle free_on_)
        : raw(raw_), size(size_), pooled(pooled_), free_on(std::move(free_on_)) {}
    ~DeviceMemoryBox();
    Lifetime lifetime() const { return Lifetime::Owned; }
    std::vector<Dependency> dependencies() const {
        return {{StreamBox::kKind, value_of(*free_on)}};
    }
    DeviceMemoryBox(const DeviceMemoryBox&) = delete;
    DeviceMemoryBox& operator=(const DeviceMemoryBox&) = delete;
};
using DeviceMemoryHandle = Handle<DeviceMemoryBox>;

/// `size` bytes on the stream's device, in stream order where the device has memory pools. Out of
/// memory unloads the retired libraries and tries once more. `size` must not be 0.
DeviceMemoryHandle allocate(const StreamHandle& stream, std::size_t size);

} // namespace cudamod::handles
