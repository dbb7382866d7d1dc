#include "launch/config.h"

#include <limits>
#include <stdexcept>
#include <string>

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

/// The driver's rules for a cluster that may stand for several.
void require_preferred(const Dim3& preferred, const Shape& shape, const Dim3& blocks) {
    if (!shape.cluster)
        throw std::invalid_argument("LaunchConfig.preferred_cluster " + preferred.text() +
                                    " takes effect only with a cluster");
    const Dim3& cluster = *shape.cluster;
    if (preferred.x % cluster.x || preferred.y % cluster.y || preferred.z != cluster.z)
        throw std::invalid_argument("LaunchConfig.preferred_cluster " + preferred.text() +
                                    " must be a multiple of the cluster " + cluster.text() +
                                    " on axes x and y, and equal to it on axis z");
    if (blocks.x % preferred.x || blocks.y % preferred.y || blocks.z % preferred.z)
        throw std::invalid_argument("LaunchConfig.grid: " + blocks.text() +
                                    " blocks are no multiple of the preferred cluster " +
                                    preferred.text());
}

CUlaunchAttribute empty_attribute(CUlaunchAttributeID id) {
    CUlaunchAttribute attribute;
    std::memset(&attribute, 0, sizeof attribute);
    attribute.id = id;
    return attribute;
}

} // namespace

bool Shape::operator==(const Shape& other) const {
    bool same_attributes = attributes && other.attributes ? *attributes == *other.attributes
                                                          : attributes == other.attributes;
    return grid == other.grid && block == other.block && cluster == other.cluster &&
           shmem_size == other.shmem_size && cooperative == other.cooperative &&
           programmatic_stream_serialization == other.programmatic_stream_serialization &&
           same_attributes;
}

Dim3 Shape::blocks() const {
    Dim3 size = cluster_or_one();
    return {in_blocks(grid.x, size.x, "x"), in_blocks(grid.y, size.y, "y"),
            in_blocks(grid.z, size.z, "z")};
}

Config::Config(const Shape& shape)
    : shape_(shape), needs_preparation_(shape.shmem_size || shape.cooperative || shape.attributes) {
    std::memset(&config_, 0, sizeof config_);
    Dim3 blocks = shape.blocks();
    config_.gridDimX = blocks.x;
    config_.gridDimY = blocks.y;
    config_.gridDimZ = blocks.z;
    config_.blockDimX = shape.block.x;
    config_.blockDimY = shape.block.y;
    config_.blockDimZ = shape.block.z;
    config_.sharedMemBytes = shape.shmem_size;
    if (shape.cluster) {
        CUlaunchAttribute attribute = empty_attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        attribute.value.clusterDim.x = shape.cluster->x;
        attribute.value.clusterDim.y = shape.cluster->y;
        attribute.value.clusterDim.z = shape.cluster->z;
        attributes_.push_back(attribute);
    }
    if (shape.cooperative) {
        CUlaunchAttribute attribute = empty_attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
        attribute.value.cooperative = 1;
        attributes_.push_back(attribute);
    }
    if (shape.programmatic_stream_serialization) {
        CUlaunchAttribute attribute =
            empty_attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
        attribute.value.programmaticStreamSerializationAllowed = 1;
        attributes_.push_back(attribute);
    }
    if (shape.attributes) {
        if (const auto& preferred = shape.attributes->preferred_cluster)
            require_preferred(*preferred, shape, blocks);
        append_native(*shape.attributes, attributes_);
    }
    if (attributes_.size() > kMaxAttributes)
        throw std::invalid_argument("LaunchConfig has " + std::to_string(attributes_.size()) +
                                    " attributes; at most " + std::to_string(kMaxAttributes) +
                                    " are supported");
    config_.numAttrs = static_cast<unsigned>(attributes_.size());
}

} // namespace cudamod::launch
