#pragma once

#include <map>
#include <string>
#include <vector>

namespace cudamod::emulator {

/// What a kind of device answers. Attribute numbers are CUdevice_attribute's.
struct Profile {
    std::string architecture; ///< "sm_90"
    std::string name;         ///< contains "emulated"
    int major = 0, minor = 0;
    char suffix = 0; ///< 'a' when architecture-specific PTX of this device runs
    std::map<int, int>
        attributes;      ///< an attribute that is missing answers CUDA_ERROR_INVALID_VALUE
    int max_cluster = 0; ///< blocks in a portable cluster, 0 without clusters

    int capability() const { return 10 * major + minor; }
    int attribute(int number) const { return attributes.at(number); }
};

/// The profile called `architecture`, or null.
const Profile* find_profile(const std::string& architecture);

/// Names of all profiles.
std::vector<std::string> profile_names();

} // namespace cudamod::emulator
