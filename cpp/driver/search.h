/// Where a driver may be, and whether what is there can serve.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cudamod::driver {

/// The exported name of the versioned cuGetProcAddress, which every supported driver has.
inline constexpr const char* kGetEntryName = "cuGetProcAddress_v2";

/// A library that answered like a driver with at least one device; cuInit has been called.
struct Candidate {
    void* handle;
    std::string path;
    int version;
};

/// What to try for a choice, in order: names for the loader and paths.
std::vector<std::string> places(const std::string& choice);

/// Opens one place and asks it. Without a value, `reason` says what is wrong with it.
std::optional<Candidate> probe(const std::string& place, std::string& reason);

} // namespace cudamod::driver
