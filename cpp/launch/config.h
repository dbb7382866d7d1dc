#pragma once

#include "launch/attributes.h"
#include "launch/dim3.h"

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace cudamod::launch {

/// What a launch is asked for. `grid` counts clusters when `cluster` is given, else blocks.
struct Shape {
    Dim3 grid, block;
    std::optional<Dim3> cluster;
    unsigned shmem_size = 0;
    bool cooperative = false;
    bool programmatic_stream_serialization = false;
    std::shared_ptr<const Attributes> attributes = nullptr; // null without any

    bool operator==(const Shape& other) const;
    Dim3 cluster_or_one() const { return cluster.value_or(Dim3{}); }
    /// The grid in blocks. Throws std::invalid_argument where that overflows the driver's 32 bits.
    Dim3 blocks() const;
};

/// An immutable launch configuration: the native structure is zeroed and filled once, and every
/// launch and every occupancy query works on a copy (a query that is given garbage in hStream
/// crashes the driver, and the driver may write into attributes).
class Config {
  public:
    static constexpr std::size_t kMaxAttributes = 16;

    /// Raises std::invalid_argument when a grid in clusters overflows the driver's unsigned
    /// dimensions, the preferred cluster does not fit cluster and grid, or there are more than
    /// kMaxAttributes attributes.
    explicit Config(const Shape& shape);

    const Shape& shape() const { return shape_; }

    /// Whether a launch needs something of kernel, driver or stream that must be seen to first.
    bool needs_preparation() const { return needs_preparation_; }

    /// A copy of everything the driver may look at, on the stack of the caller.
    struct Native {
        CUlaunchConfig config;
        std::array<CUlaunchAttribute, kMaxAttributes> attributes;
    };
    void copy_to(Native& native, CUstream stream) const {
        native.config = config_;
        native.config.hStream = stream;
        if (config_.numAttrs) {
            std::memcpy(native.attributes.data(), attributes_.data(),
                        config_.numAttrs * sizeof(CUlaunchAttribute));
            native.config.attrs = native.attributes.data();
        }
    }

  private:
    Shape shape_;
    bool needs_preparation_;
    CUlaunchConfig config_;
    std::vector<CUlaunchAttribute> attributes_;
};

} // namespace cudamod::launch
