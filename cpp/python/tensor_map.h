#pragma once

#include "python/tensor.h"

#include <cuda.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>

namespace cudamod::python {

/// What the driver's encoders made: the native part of Python's `TensorMap`. It keeps the memory
/// that it describes alive.
class EncodedTensorMap {
  public:
    EncodedTensorMap(const CUtensorMap& encoded, const Tensor& tensor)
        : encoded_(new CUtensorMap(encoded)), address_(tensor.address), device_(tensor.device),
          memory_(tensor.memory), owner_(tensor.owner) {}

    /// The 128 bytes, and the device that their memory lies on (-1: any). Whole also while another
    /// thread replaces the address.
    void copy_to(void* place, int& device) const {
        std::lock_guard lock(mutex_);
        std::memcpy(place, encoded_.get(), sizeof(CUtensorMap));
        device = device_;
    }
    std::uint64_t address() const { return address_; }
    int device() const { return device_; }
    nb::handle owner() const { return owner_; }
    void drop_owner() { owner_ = nb::none(); }

    /// Takes what was encoded for another address of the same kind of tensor.
    void replace(const CUtensorMap& encoded, const Tensor& tensor);

    static PyTypeObject* python_type;

  private:
    mutable std::mutex mutex_;             // held for a copy only
    std::unique_ptr<CUtensorMap> encoded_; // on the heap for its alignment, which Python's lacks
    std::uint64_t address_;
    int device_;
    handles::DeviceMemoryHandle memory_;
    nb::object owner_;
};

} // namespace cudamod::python
