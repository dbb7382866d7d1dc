#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace cudamod::launch {

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;

    bool operator==(const Dim3&) const = default;
    /// The largest 64-bit number where the product exceeds it.
    std::uint64_t product() const {
        std::uint64_t area = std::uint64_t{x} * y;
        if (z && area > std::numeric_limits<std::uint64_t>::max() / z)
            return std::numeric_limits<std::uint64_t>::max();
        return area * z;
    }
    std::string text() const {
        return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
    }
};

} // namespace cudamod::launch
