#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace cudamod::launch {

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;

    bool operator==(const Dim3&) const = default;
    std::uint64_t product() const { return std::uint64_t{x} * y * z; }
    std::string text() const;
};

/// What a launch is asked for. `grid` counts clusters when `cluster` is given, else blocks.
struct Shape {
    Dim3 grid, block;
    std::optional<Dim3> cluster;
    unsigned shmem_size = 0;
    bool cooperative = false;
    bool programmatic_stream_serialization = false;

    bool operator==(const Shape&) const = default;
};

/// An immutable launch configuration: the native structure is zeroed and filled once, and every
/// launch and every occupancy query works on a copy (a query that is given garbage in hStream
/// crashes the driver).
class Config {
  public:
    /// Raises std::invalid_argument when a grid in clusters overflows the driver's unsigned
    /// dimensions.
    explicit Config(const Shape& shape);

    const Shape& shape() const { return shape_; }

    /// A copy of everything the driver may look at, on the stack of the caller.
    struct Native {
        CUlaunchConfig config;
        std::array<CUlaunchAttribute, 3> attributes;
    };
    void copy_to(Native& native, CUstream stream) const {
        native.config = config_;
        native.config.hStream = stream;
        if (config_.numAttrs) {
            native.attributes = attributes_;
            native.config.attrs = native.attributes.data();
        }
    }

  private:
    void add(CUlaunchAttributeID id, const CUlaunchAttributeValue& value);

    Shape shape_;
    CUlaunchConfig config_;
    std::array<CUlaunchAttribute, 3> attributes_;
};

} // namespace cudamod::launch
