#include "launch/config.h"

#include <cstring>
#include <limits>
#include <stdexcept>

namespace cudamod::launch {

namespace {

unsigned in_blocks(unsigned clusters, unsigned size, const char* axis) {
    std::uint64_t blocks = std::uint64_t{clusters} * size;
    if (blocks > std::numeric_limits<unsigned>::max())
        throw std::invalid_argument("LaunchConfig.grid: " + std::to_string(clusters) +
                                    " clusters of " + std::to_string(size) + " blocks on axis " +
                                    axis + " exceed the driver's 32-bit dimensions");
    return static_cast<unsigned>(blocks);
}

} // namespace

std::string Dim3::text() const {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

Config::Config(const Shape& shape) : shape_(shape) {
    std::memset(&config_, 0, sizeof config_);
    std::memset(attributes_.data(), 0, sizeof attributes_);
    Dim3 cluster = shape.cluster.value_or(Dim3{});
    config_.gridDimX = in_blocks(shape.grid.x, cluster.x, "x");
    config_.gridDimY = in_blocks(shape.grid.y, cluster.y, "y");
    config_.gridDimZ = in_blocks(shape.grid.z, cluster.z, "z");
    config_.blockDimX = shape.block.x;
    config_.blockDimY = shape.block.y;
    config_.blockDimZ = shape.block.z;
    config_.sharedMemBytes = shape.shmem_size;
    CUlaunchAttributeValue value;
    std::memset(&value, 0, sizeof value);
    if (shape.cluster) {
        value.clusterDim.x = cluster.x;
        value.clusterDim.y = cluster.y;
        value.clusterDim.z = cluster.z;
        add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value);
    }
    if (shape.cooperative) {
        std::memset(&value, 0, sizeof value);
        value.cooperative = 1;
        add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value);
    }
    if (shape.programmatic_stream_serialization) {
        std::memset(&value, 0, sizeof value);
        value.programmaticStreamSerializationAllowed = 1;
        add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value);
    }
}

void Config::add(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
    CUlaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = id;
    attribute.value = value;
}

} // namespace cudamod::launch
