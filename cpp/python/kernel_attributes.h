#pragma once

#include "launch/kernel.h"
#include "python/instance.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace cudamod::python {

/// What has been read of one kernel, by device. Values that anybody can set are never kept.
class AttributeCache {
  public:
    static constexpr int kAttributes = 16;

    int read(const launch::Kernel& kernel, CUfunction_attribute attribute, int device);

  private:
    struct PerDevice {
        std::array<std::atomic<bool>, kAttributes> known{};
        std::array<std::atomic<int>, kAttributes> values{};
    };
    PerDevice& of(int device);

    std::mutex mutex_;
    std::unordered_map<int, std::unique_ptr<PerDevice>> devices_;
    std::atomic<PerDevice*> first_{nullptr}; // that of device 0, which mostly is the only one
};

/// Python's `KernelAttributes`: the driver's figures of a kernel on one device, or on whichever is
/// current.
struct KernelAttributes {
    std::shared_ptr<const launch::Kernel> kernel;
    std::shared_ptr<AttributeCache> cache;
    int device; // -1: the current one at each read
};

} // namespace cudamod::python
